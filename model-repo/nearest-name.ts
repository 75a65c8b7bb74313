/** Levenshtein distance: single-character insertions, deletions and substitutions that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const current = [i];
    for (let j = 1; j <= to.length; j++) {
      const substitution = (previous[j - 1] as number) + (from[i - 1] === to[j - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[j] as number) + 1, (current[j - 1] as number) + 1));
    }
    previous = current;
  }
  return previous[to.length] as number;
}

/** The known name that was probably meant, or null when none is near (more than a third of the letters differ). */
export function nearestName(name: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  let bestDistance = Math.floor(Math.max(name.length, 4) / 3) + 1;
  if (name.length > 100) return null;
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** End of a message about an unknown name: the nearest match, if any, and all known names. */
export function knownNames(name: string, known: readonly string[], what: string): string {
  const hint = didYouMean(name, known);
  return `${hint === "" ? "; known" : `${hint} Known`} ${what}: ${known.join(", ")}`;
}

/** `; did you mean "x"?` for an error message, or nothing. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return nearest === null ? "" : `; did you mean "${nearest}"?`;
}
