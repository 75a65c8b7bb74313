/** Exit codes of the commands, as shown in --help. */
import type { CompareVerdict } from "../tuning/compare/compare";
import type { Result } from "../tuning/results/result-schema";

export const exitCodes = {
  /** An answer was found. */
  ok: 0,
  /** Something happened that should not happen. */
  unexpected: 1,
  /** Options, input files or the results folder are not usable. */
  badInput: 2,
  /** The sweep is complete, but no variant holds the SLO at any rate. */
  sloNeverHeld: 3,
  /** The sweep ended early; the result covers the variants measured so far. */
  partial: 4,
  /** The sweep is complete, but --goal-rate is not reached for sure; or a promised rate is not. */
  goalMissed: 5,
  /** compare, replay: at least one variant is worse than before. */
  worse: 6,
  /** compare --strict: no variant is better than before. */
  noEvidence: 7,
  /** Interrupted by Ctrl-C or a termination signal; run it again with --resume to go on. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Exit code for a sweep that wrote a result. */
export function exitCodeOf(result: Result, interrupted: boolean): ExitCode {
  if (interrupted) return exitCodes.interrupted;
  if (result.endedEarly !== null) return exitCodes.partial;
  if (result.recommendation.variant === null) return exitCodes.sloNeverHeld;
  if (result.goal !== null && result.goal.answer !== "yes") return exitCodes.goalMissed;
  return exitCodes.ok;
}

/** Exit code of a comparison. */
export function compareExitCode(verdict: CompareVerdict, strict: boolean): ExitCode {
  if (verdict === "worse") return exitCodes.worse;
  return strict && verdict === "no evidence" ? exitCodes.noEvidence : exitCodes.ok;
}

/** The list for --help. */
export const exitCodeHelp = `Exit codes:
    0  an answer was found
    1  unexpected error
    2  bad option, unreadable input or unusable results folder
    3  no variant holds the SLO at any rate
    4  ended early; the result covers what was measured
    5  --goal-rate, or a promised rate, is not reached for sure
    6  compare, replay: a variant is worse than before
    7  compare --strict: no evidence that a variant is better than before
  130  interrupted; run it again with --resume to go on`;
