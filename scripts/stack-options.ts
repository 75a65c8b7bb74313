/** Options of the tune command about a stack's money and configuration. Pure. */
import type { Command } from "commander";
import { numberOf, textOf, wordOf, type Complaints, type NumberRule, type Raw } from "./option-values";

export interface StackRunOptions {
  /** The sweep ends when it has cost this much, US dollars; where the estimate is above it, it asks first. */
  readonly maxCostUsd: number;
  /** File of prices that replace those of the table; null: the table as it is. */
  readonly prices: string | null;
  /** Takes every question for answered with yes. */
  readonly yes: boolean;
  /** What becomes of the stack when the sweep has ended, whether well or not; null: it stays as it is. */
  readonly after: (typeof afterWords)[number] | null;
  /** Preflight: try the way to the server with a model that does nothing. A sweep always does. */
  readonly wire: boolean;
  /** Writes the recommended variant into the stack's configuration. */
  readonly apply: boolean;
}

const afterWords = ["scale-to-zero"] as const;
const defaultMaxCostUsd = 5;
const maxCostRule: NumberRule = {
  min: 0.01,
  max: 100_000,
  integer: false,
  fix: "US dollars from 0.01, e.g. 5",
};

/** As commander delivers them. */
export interface RawStackRunOptions {
  maxCost?: Raw;
  prices?: Raw;
  yes?: true;
  after?: Raw;
  apply?: true;
  wire?: true;
}

/** Declares them. */
export function addStackRunOptions(command: Command): Command {
  return command
    .option(
      "--max-cost [USD]",
      `end with the best answer so far when the sweep has cost that much (default: ${defaultMaxCostUsd})`,
    )
    .option("--prices [FILE]", "JSON file of prices that replace those of the price table")
    .option("--apply", "write the winner into the stack's configuration, after showing the preview")
    .option(
      "--after [WHAT]",
      "scale-to-zero: let servers and load workers go when the sweep has ended or failed",
    )
    .option(
      "--wire",
      "preflight: also try how many requests the way to the server passes (a sweep of a stack always does)",
    )
    .option("--yes", "ask nothing: neither about an estimate above --max-cost nor before --apply writes");
}

/**
 * @param hasStack --stack was given
 * @param isRunning --triton or --stack was given: the server is not ours
 */
export function readStackRunOptions(
  raw: RawStackRunOptions,
  hasStack: boolean,
  isRunning: boolean,
  complaints: Complaints,
): StackRunOptions {
  const given = [
    ["--max-cost", raw.maxCost],
    ["--prices", raw.prices],
    ["--apply", raw.apply],
    ["--after", raw.after],
    ["--yes", raw.yes],
  ] as const;
  if (!hasStack)
    for (const [option, value] of given)
      if (value !== undefined) complaints.list.push(`${option} goes with --stack NAME`);
  if (raw.wire && !isRunning)
    complaints.list.push("--wire is for a running server: name one with --triton HOST:PORT or --stack NAME");
  const maxCost = textOf(raw.maxCost, "--max-cost", "5", complaints);
  const after = textOf(raw.after, "--after", afterWords[0], complaints);
  return {
    maxCostUsd:
      (maxCost === null ? null : numberOf(maxCost, "--max-cost", maxCostRule, complaints)) ??
      defaultMaxCostUsd,
    prices: textOf(raw.prices, "--prices", "prices.json", complaints),
    yes: raw.yes ?? false,
    after: after === null ? null : wordOf(after, "--after", afterWords, complaints),
    apply: raw.apply ?? false,
    wire: raw.wire ?? false,
  };
}
