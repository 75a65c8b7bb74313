/** `npm run compare -- BEFORE AFTER`: a gate for CI that does not fail on chance. */
import { Command, InvalidArgumentError } from "commander";
import { compareResults, defaultFalseAlarm, incomparable } from "../tuning/compare/compare";
import { renderComparison } from "../tuning/compare/render";
import { readManifest } from "../tuning/results/manifest";
import { ResultsError } from "../tuning/results/results-error";
import { readResult } from "../tuning/results/results-folder";
import { circumstancesOf } from "./circumstances";
import { compareExitCode } from "./exit-codes";
import { runThinCommand } from "./thin-command";

interface Options {
  readonly falseAlarm?: number;
  readonly strict?: true;
  readonly json?: true;
}

const command = new Command("compare")
  .description(
    "Compares two sweeps: which variants became better or worse beyond what chance explains, and what else differs.\n" +
      "Exit code 0: none is worse; 6: at least one is; 7, with --strict: none is better either; 2: they cannot be compared.",
  )
  .argument("<BEFORE>", "results folder of the earlier sweep")
  .argument("<AFTER>", "results folder of the later sweep")
  .option(
    "--false-alarm <PERCENT>",
    `how often two sweeps of the same system may be called different (default: ${100 * defaultFalseAlarm})`,
    percentOf,
  )
  .option("--strict", "fail unless a variant is better")
  .option("--json", "print the comparison as JSON");

runThinCommand(
  command,
  async ([before, after], { falseAlarm = defaultFalseAlarm, strict, json }: Options) => {
    const [first, second] = [readResult(before!), readResult(after!)];
    const reasons = incomparable(first, second);
    if (reasons.length > 0)
      throw new ResultsError("invalid", `${before} and ${after} cannot be compared: ${reasons.join("; ")}`);
    const comparison = compareResults(first, second, falseAlarm);
    const circumstances = circumstancesOf(readManifest(before!), readManifest(after!));
    process.stdout.write(
      json
        ? `${JSON.stringify({ ...comparison, ...circumstances }, null, 2)}\n`
        : renderComparison(comparison, circumstances),
    );
    return compareExitCode(comparison.verdict, strict ?? false);
  },
);

function percentOf(text: string): number {
  const percent = Number(text);
  if (!(percent > 0 && percent < 100))
    throw new InvalidArgumentError("give per cent above 0 and below 100, e.g. 5");
  return percent / 100;
}
