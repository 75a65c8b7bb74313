/** `npm run tune`: finds every variant's SLO rate, its bottleneck, and the one to serve. */
import { join } from "node:path";
import { catalogue } from "../model-repo/catalogue";
import { imagesFolder } from "../model-repo/repository";
import { TargetError } from "../targets/target-error";
import { anyFailed, renderChecks } from "../tuning/preflight/check";
import { wantsColour } from "../tuning/report/ansi";
import { LiveView } from "../tuning/report/live-view";
import { renderSummary } from "../tuning/report/terminal";
import { newestUnfinished, reportFileName, ResultsFolder, runName } from "../tuning/results/results-folder";
import type { Manifest } from "../tuning/results/manifest";
import { tune } from "../tuning/tune";
import { z } from "zod";
import packageJson from "../package.json";
import { exitCodeOf, exitCodes, type ExitCode } from "./exit-codes";
import { isInputError } from "./input-errors";
import { prepareTarget } from "./open-target";
import { checkServers } from "./run-preflight";
import { parseTuneCommandLine, type TuneOptions } from "./tune-options";

/** Folder below which every run gets a folder of its own. */
const resultsRoot = "results";

async function main(words: readonly string[]): Promise<ExitCode> {
  const commandLine = parseTuneCommandLine(
    words,
    catalogue.map(({ name }) => name),
  );
  if (commandLine.kind === "help") {
    process.stdout.write(commandLine.text);
    return exitCodes.ok;
  }
  if (commandLine.kind === "invalid") {
    for (const error of commandLine.errors) process.stderr.write(`tune: ${error}\n`);
    return exitCodes.badInput;
  }
  try {
    return await run(commandLine.options);
  } catch (error) {
    if (!isInputError(error)) throw error;
    process.stderr.write(`tune: ${error.message.replaceAll("\n", "\ntune: ")}\n`);
    return exitCodes.badInput;
  }
}

async function run(options: TuneOptions): Promise<ExitCode> {
  const colour = wantsColour(process.stderr, process.env);
  const view = new LiveView(process.stderr, { colour, nowS: () => performance.now() / 1000 });
  const abort = interruptible(view);
  const imageFolder = options.images ?? imagesFolder;
  const prepared = await prepareTarget(options, imageFolder);
  const { servers, variants } = prepared;
  if (servers !== null) {
    const checks = await checkServers(servers, variants);
    if (anyFailed(checks))
      throw new TargetError(`the server is not ready for a sweep:\n${renderChecks(checks)}`);
  }
  const folder = ResultsFolder.open(resultsFolderFor(options), options.resume);
  try {
    for (const note of folder.notes) view.note(note);
    view.note(`results: ${folder.path}`);
    const target = await prepared.open(dilationsOf(folder.previousManifest));
    try {
      for (const note of target.notes) view.note(note);
      const result = await tune(
        target,
        folder,
        {
          variants,
          slo: options.slo,
          goalRatePerS: options.goalRatePerS,
          load: options.load,
          effort: options.effort,
          seed: options.seed,
          imageFolder,
          transport: options.transport,
          project: { name: packageJson.name, version: packageJson.version },
          options: z.record(z.string(), z.json()).parse(options),
          price: null,
        },
        { onEvent: (event) => view.onEvent(event), signal: abort.signal },
      );
      view.close();
      const report = join(folder.path, reportFileName);
      const tableColour = wantsColour(process.stdout, process.env);
      process.stdout.write(
        options.json ? `${JSON.stringify(result, null, 2)}\n` : renderSummary(result, report, tableColour),
      );
      return exitCodeOf(result, abort.signal.aborted);
    } finally {
      await target.close();
    }
  } finally {
    view.close();
    folder.close();
  }
}

/** What an interrupted sweep chose: going on with other factors would plan other trials. */
function dilationsOf(manifest: Manifest | null): Map<string, number> {
  const known = (manifest?.variants ?? []).map(
    ({ variant, timeDilation }) => [variant.name, timeDilation] as const,
  );
  return new Map(known.filter((entry): entry is readonly [string, number] => entry[1] !== null));
}

function resultsFolderFor(options: TuneOptions): string {
  if (options.out !== null) return options.out;
  const unfinished = options.resume ? newestUnfinished(resultsRoot) : null;
  return unfinished ?? join(resultsRoot, runName(new Date()));
}

/** The first Ctrl-C ends the sweep in order; a second one ends the process. */
function interruptible(view: LiveView): AbortController {
  const abort = new AbortController();
  const onSignal = (): void => {
    if (abort.signal.aborted) process.exit(exitCodes.interrupted);
    view.note("interrupted: stopping the trial; run the same command with --resume to go on");
    abort.abort();
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return abort;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(
      `tune: unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = exitCodes.unexpected;
  },
);
