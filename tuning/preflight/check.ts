/** One thing that must be right before a sweep, and the table of all of them. */

export interface Check {
  /** What was looked at, a few words. */
  readonly name: string;
  /** `warning`: the sweep works, but says less. */
  readonly state: "ok" | "warning" | "failed";
  /** What was found. */
  readonly found: string;
  /** What to do about it; null when all is well. */
  readonly fix: string | null;
}

export function ok(name: string, found: string): Check {
  return { name, state: "ok", found, fix: null };
}

export function warning(name: string, found: string, fix: string): Check {
  return { name, state: "warning", found, fix };
}

export function failed(name: string, found: string, fix: string): Check {
  return { name, state: "failed", found, fix };
}

const marks = { ok: "ok     ", warning: "warning", failed: "FAILED " } as const;

/** One line a check, the fix below it. */
export function renderChecks(checks: readonly Check[]): string {
  const width = Math.max(0, ...checks.map(({ name }) => name.length));
  return checks
    .flatMap(({ name, state, found, fix }) => [
      `${marks[state]}  ${name.padEnd(width)}  ${found}`,
      ...(fix === null ? [] : [`${" ".repeat(9 + width)}  -> ${fix}`]),
    ])
    .join("\n");
}

/** True when a sweep would not work. */
export function anyFailed(checks: readonly Check[]): boolean {
  return checks.some(({ state }) => state === "failed");
}
