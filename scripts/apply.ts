/** `npm run apply -- [DIR] --stack NAME`: a sweep's winner into the stack's configuration. */
import { Command } from "commander";
import { newestFinished } from "../tuning/results/results-folder";
import { applyRecommendation } from "./apply-winner";
import { needed, runThinCommand } from "./thin-command";
import { exitCodes } from "./exit-codes";
import { TargetError } from "../targets/target-error";

const command = new Command("apply")
  .description(
    "Writes what a sweep (or npm run decide) recommends into the configuration of a stack, after showing the difference and the preview.",
  )
  .argument("[DIR]", "results folder (default: the newest finished one in results/)")
  .option("--stack <NAME>", "stack whose Pulumi.<NAME>.yaml is written; required")
  .option("--yes", "do not ask before writing");

runThinCommand(command, async (words, options: { stack?: string; yes?: true }) => {
  const stack = needed(options.stack, "--stack", "dev");
  const folder = words[0] ?? newestFinished("results");
  if (folder === null)
    throw new TargetError("there is no finished sweep in results/: run npm run tune, or name a folder");
  await applyRecommendation(folder, stack, options.yes ?? false, (text) => void process.stdout.write(text));
  return exitCodes.ok;
});
