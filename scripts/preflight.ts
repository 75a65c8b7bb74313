/** `npm run preflight`: what a sweep needs, checked in a few seconds. Takes the options of `npm run tune`; what is served stays served. */
import { availableParallelism } from "node:os";
import { variantWords } from "../model-repo/catalogue";
import { imagesFolder } from "../model-repo/repository";
import { anyFailed, renderChecks } from "../tuning/preflight/check";
import { exitCodes, type ExitCode } from "./exit-codes";
import { isInputError } from "./input-errors";
import { prepareTarget } from "./open-target";
import { runPreflight } from "./run-preflight";
import { parseTuneCommandLine, type TuneOptions } from "./tune-options";

async function main(words: readonly string[]): Promise<ExitCode> {
  const commandLine = parseTuneCommandLine(words, variantWords, "preflight");
  if (commandLine.kind === "help") {
    process.stdout.write(commandLine.text);
    return exitCodes.ok;
  }
  if (commandLine.kind === "invalid") {
    for (const error of commandLine.errors) process.stderr.write(`preflight: ${error}\n`);
    return exitCodes.badInput;
  }
  try {
    return await check(commandLine.options);
  } catch (error) {
    if (!isInputError(error)) throw error;
    process.stderr.write(`preflight: ${error.message.replaceAll("\n", "\npreflight: ")}\n`);
    return exitCodes.badInput;
  }
}

async function check(options: TuneOptions): Promise<ExitCode> {
  const imageFolder = options.images ?? imagesFolder;
  const prepared = await prepareTarget(options, imageFolder);
  try {
    const { servers, variants, checks: own } = prepared;
    // A stack has workers and images of its own.
    const isHere = options.stack === null;
    const { workers } = options;
    const cores = availableParallelism();
    const checks = [
      ...own,
      ...(await runPreflight({ servers, variants, imageFolder, workers, cores, isHere })),
    ];
    process.stdout.write(`${renderChecks(checks)}\n`);
    return anyFailed(checks) ? exitCodes.badInput : exitCodes.ok;
  } finally {
    await prepared.close();
  }
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`preflight: unexpected error: ${text}\n`);
    process.exitCode = exitCodes.unexpected;
  },
);
