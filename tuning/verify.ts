/** Trials at one rate until it is clear whether the SLO holds there: after a change was applied, whether the promise is kept. */
import { judge } from "./statistics/verdict";
import type { JudgedTrial } from "./outcome";
import type { Slo, TrialProgress, TrialRunner, TrialSpec, Verdict } from "./trial";
import type { Variant } from "../model-repo/variant";

export interface Promised {
  readonly variant: Variant;
  readonly slo: Slo;
  /** Requests per second of one replica. */
  readonly ratePerS: number;
  readonly seed: number;
}

export interface Verification {
  /** `undecided`: no valid trial, or the misses lie too near the SLO's share even after the longest one. */
  readonly verdict: Verdict;
  /** Valid trials, in order. */
  readonly trials: readonly JudgedTrial[];
  /** Why trials were invalid, or could not be run. */
  readonly problems: readonly string[];
}

const WARMUP_S = 5;
/** Windows of the trials, seconds: longer ones where shorter ones did not decide. */
const windowsS = [30, 60, 120] as const;

/** Runs at most three trials; ends with the first one that decides. */
export async function verifyRate(
  { variant, slo, ratePerS, seed }: Promised,
  runner: TrialRunner,
  onProgress?: (spec: TrialSpec, progress: TrialProgress) => void,
  signal?: AbortSignal,
): Promise<Verification> {
  const trials: JudgedTrial[] = [];
  const problems: string[] = [];
  for (const [index, measureS] of windowsS.entries()) {
    signal?.throwIfAborted();
    const spec: TrialSpec = {
      variant,
      shape: { kind: "poisson", ratePerS },
      slo,
      // Other arrivals than the sweep's own trials had.
      seed: seed * 1000 + 900 + index,
      warmupS: WARMUP_S,
      measureS,
      purpose: "verify",
    };
    const result = await runner.run(spec, (progress) => onProgress?.(spec, progress), signal);
    if (!result.load.valid) {
      problems.push(result.load.invalidReasons.join("; "));
      continue;
    }
    const judged = judge(spec, result);
    trials.push(judged);
    if (judged.verdict !== "undecided") return { verdict: judged.verdict, trials, problems };
  }
  return { verdict: "undecided", trials, problems };
}
