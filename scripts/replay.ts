/** `npm run replay -- RUN`: a sweep again, measured or from its recorded trials, and whether it comes to the same. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Command } from "commander";
import { compareResults } from "../tuning/compare/compare";
import { renderComparison } from "../tuning/compare/render";
import { formatRate } from "../tuning/report/format";
import { readManifest, type Manifest } from "../tuning/results/manifest";
import { pointLogFileName, readPointLog } from "../tuning/results/point-log";
import { replayRecorded } from "../tuning/results/replay-recorded";
import type { Result } from "../tuning/results/result-schema";
import { ResultsError } from "../tuning/results/results-error";
import { readResult, runName } from "../tuning/results/results-folder";
import { circumstancesOf } from "./circumstances";
import { compareExitCode, exitCodes, type ExitCode } from "./exit-codes";
import { wordsToRepeat } from "./replay-words";
import { runThinCommand } from "./thin-command";

/** Rates that are reproduced to this are the same: nothing but rounding may differ. */
const sameShare = 1e-6;

interface Options {
  readonly recorded?: true;
  readonly out?: string;
}

const command = new Command("replay")
  .description(
    "Repeats a sweep with the options, variants, seed and objective of its manifest, and compares the two.\n" +
      "With --recorded nothing is measured: the recorded trials are judged again by this version of the program.\n" +
      "Exit code 0: the same, or better; 6: a variant is worse (--recorded: comes to another rate); 2: not possible.",
  )
  .argument("<RUN>", "results folder")
  .option("--recorded", "judge the recorded trials again")
  .option("--out <DIR>", "results folder of the repetition (default: results/<start time>)");

runThinCommand(command, async ([folder], { recorded, out }: Options) => {
  // Before anything is measured: what it is compared with is there.
  const before = readResult(folder!);
  const manifest = readManifest(folder!);
  if (manifest === null)
    throw new ResultsError("invalid", `${folder} has no manifest.json: there is nothing to repeat it from`);
  return recorded
    ? judgeAgain(folder!, before, manifest)
    : measureAgain(before, manifest, out ?? join("results", runName(new Date())));
});

function judgeAgain(folder: string, result: Result, manifest: Manifest): ExitCode {
  const before = new Map(result.variants.map((variant) => [variant.name, variant]));
  const { records } = readPointLog(join(folder, pointLogFileName));
  let different = 0;
  for (const { name, outcome, missing } of replayRecorded(manifest, records)) {
    const was = before.get(name)?.sloRate?.estimate ?? null;
    const is = outcome?.sloRate?.estimate ?? null;
    const same =
      missing === null && (was === null || is === null ? was === is : Math.abs(is / was - 1) < sameShare);
    if (!same) different++;
    const text =
      missing === null
        ? same
          ? `${rateOf(is)} again, from ${outcome!.trials.length} trials`
          : `${rateOf(is)} now, ${rateOf(was)} before${changeText(was, is)}`
        : `asks for a trial now that was not recorded (${missing})`;
    process.stdout.write(`${name}: ${text}\n`);
  }
  return different === 0 ? exitCodes.ok : exitCodes.worse;
}

/** Rates that look alike when rounded may differ. */
function changeText(was: number | null, is: number | null): string {
  if (was === null || is === null) return "";
  const percent = 100 * (is / was - 1);
  return ` (${percent > 0 ? "+" : ""}${percent.toPrecision(2)} %)`;
}

function rateOf(rate: number | null): string {
  return rate === null ? "no rate" : `${formatRate(rate)} requests/s`;
}

/** By the tune command itself, so that everything is as it was. */
async function measureAgain(before: Result, manifest: Manifest, out: string): Promise<ExitCode> {
  const words = [...wordsToRepeat(manifest), "--out", out];
  process.stderr.write(`npm run tune -- ${words.join(" ")}\n`);
  const child = spawn(process.execPath, [...process.execArgv, join(__dirname, "tune.ts"), ...words], {
    stdio: "inherit",
  });
  const code = await new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (status) => resolve(status ?? exitCodes.interrupted));
  });
  const answered: readonly number[] = [exitCodes.ok, exitCodes.sloNeverHeld, exitCodes.goalMissed];
  if (!answered.includes(code)) return code as ExitCode;
  const comparison = compareResults(before, readResult(out));
  process.stdout.write(`\n${renderComparison(comparison, circumstancesOf(manifest, readManifest(out)))}`);
  return compareExitCode(comparison.verdict, false);
}
