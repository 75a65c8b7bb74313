/** `npm run verify -- [DIR] --stack NAME`: whether a stack that was updated keeps the rate that a sweep promised. */
import { join } from "node:path";
import { Command } from "commander";
import { imagesFolder } from "../model-repo/repository";
import { connectStack } from "../targets/stack/connect-stack";
import { Kube } from "../targets/stack/kube";
import { readStackOutputs } from "../targets/stack/read-outputs";
import { openStackTarget } from "../targets/stack/stack-target";
import { TargetError } from "../targets/target-error";
import { promisedRate } from "../tuning/decision/promised-rate";
import { formatMs, formatRate, formatShare, formatSlo } from "../tuning/report/format";
import { writeFileAtomic } from "../tuning/results/durable";
import { namedNonFinite } from "../tuning/results/trial-schema";
import { newestFinished, readResult } from "../tuning/results/results-folder";
import { quantileMs } from "../tuning/results/result-trial";
import { liveRunner } from "../tuning/live-trials";
import { verifyRate, type Verification } from "../tuning/verify";
import { exitCodes, type ExitCode } from "./exit-codes";
import { needed, runThinCommand } from "./thin-command";

/** Name of the file in the results folder. */
const verificationFileName = "verification.json";

interface Options {
  readonly stack?: string;
  readonly yesProd?: true;
}

const command = new Command("verify")
  .description(
    "Sends the promised rate of a sweep's winner to a stack that was updated to serve it, for half a minute or longer, " +
      "and says whether the objective holds. Exit code 0: it does; 5: not for sure.",
  )
  .argument("[DIR]", "results folder (default: the newest finished one in results/)")
  .option("--stack <NAME>", "stack that serves the winner now; required")
  .option("--yes-prod", "the stack serves production: its users share the servers with the trial");

runThinCommand(command, async ([given], options: Options) => {
  const stack = needed(options.stack, "--stack", "dev");
  const folder = given ?? newestFinished("results");
  if (folder === null)
    throw new TargetError("there is no finished sweep in results/: run npm run tune, or name a folder");
  return verify(folder, stack, options.yesProd ?? false);
});

async function verify(folder: string, stack: string, yesProd: boolean): Promise<ExitCode> {
  const result = readResult(folder);
  const outputs = await readStackOutputs(stack);
  if (outputs.environment === "prod" && !yesProd)
    throw new TargetError(
      `stack ${stack} serves production: give --yes-prod if a trial at full rate is meant`,
    );
  const promised = promisedRate(result, outputs.variant);
  if (typeof promised === "string") throw new TargetError(`${folder}, stack ${stack}: ${promised}`);
  const connected = await connectStack({ stack, outputs, kube: await Kube.connect(outputs.cluster) });
  try {
    const target = await openStackTarget({ connected, maxRatePerS: promised.ratePerS });
    try {
      process.stderr.write(
        `${promised.variant.name} at ${formatRate(promised.ratePerS)} requests/s, ${formatSlo(promised.slo)}\n`,
      );
      const runner = liveRunner(target, { imageFolder: imagesFolder, transport: "lean" });
      const verification = await verifyRate(promised, runner);
      writeFileAtomic(
        join(folder, verificationFileName),
        `${JSON.stringify({ stack, at: new Date().toISOString(), ...verification }, namedNonFinite, 2)}\n`,
      );
      process.stdout.write(describe(verification));
      return verification.verdict === "pass" ? exitCodes.ok : exitCodes.goalMissed;
    } finally {
      await target.close();
    }
  } finally {
    await connected.close();
  }
}

function describe({ verdict, trials, problems }: Verification): string {
  const words = {
    pass: "The promise holds.",
    fail: "The promise does NOT hold.",
    undecided: "It is not clear whether the promise holds.",
  };
  const lines = trials.map(
    ({ spec, result, missShare, reason }) =>
      `  ${spec.measureS} s: ${formatShare(missShare.estimate, 1)} missed the bound, ` +
      `p${100 * spec.slo.quantile} ${formatMs(quantileMs(result.load, spec.slo.quantile))}. ${reason}`,
  );
  return [words[verdict], ...lines, ...problems.map((problem) => `  invalid trial: ${problem}`), ""].join(
    "\n",
  );
}
