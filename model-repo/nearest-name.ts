/** Edit distance: insertions, deletions, substitutions and swaps of neighbours that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, index) => index)];
  const cell = (i: number, j: number): number => rows[i]?.[j] as number;
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= to.length; j++) {
      const substitution = cell(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const swap =
        i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
          ? cell(i - 2, j - 2) + 1
          : Infinity;
      row.push(Math.min(substitution, cell(i - 1, j) + 1, (row[j - 1] as number) + 1, swap));
    }
  }
  return cell(from.length, to.length);
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
