/** `npm run tune`: finds every variant's SLO rate, its bottleneck, and the one to serve. */
import { join } from "node:path";
import { variantWords } from "../model-repo/catalogue";
import { listImages } from "../loadgen/image-tensor";
import { imagesFolder } from "../model-repo/repository";
import { TargetError } from "../targets/target-error";
import { anyFailed, renderChecks } from "../tuning/preflight/check";
import { scaleToZero } from "../targets/stack/scale-to-zero";
import type { CostMeter } from "../tuning/sweep-cost";
import { wantsColour } from "../tuning/report/ansi";
import { LiveView } from "../tuning/report/live-view";
import { renderSummary } from "../tuning/report/terminal";
import { newestUnfinished, reportFileName, ResultsFolder, runName } from "../tuning/results/results-folder";
import type { Manifest } from "../tuning/results/manifest";
import { ResultsError } from "../tuning/results/results-error";
import { tune } from "../tuning/tune";
import { z } from "zod";
import packageJson from "../package.json";
import { accuracyOf } from "./accuracy";
import { applyRecommendation } from "./apply-winner";
import { exitCodeOf, exitCodes, type ExitCode } from "./exit-codes";
import { isInputError } from "./input-errors";
import { onInterruption } from "./interrupts";
import { prepareTarget, type PreparedTarget } from "./open-target";
import { checkServers } from "./run-preflight";
import { startSpending } from "./spending";
import { defaultSlo, parseTuneCommandLine, type TuneOptions } from "./tune-options";

/** Folder below which every run gets a folder of its own. */
const resultsRoot = "results";

async function main(words: readonly string[]): Promise<ExitCode> {
  const commandLine = parseTuneCommandLine(words, variantWords);
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
  await checkNamedFolders(options);
  const colour = wantsColour(process.stderr, process.env);
  const view = new LiveView(process.stderr, { colour, nowS: () => performance.now() / 1000 });
  const abort = interruptible(view);
  const prepared = await prepareTarget(options, options.images ?? imagesFolder);
  try {
    let meter: CostMeter | null;
    try {
      await refuseUnready(prepared, view);
      meter = await startSpending(options, prepared, (text) => view.note(text));
    } catch (error) {
      remindOfCost(options, view, "put right what follows and run the same command again");
      throw error;
    }
    let code: ExitCode;
    try {
      code = await sweep(options, prepared, meter, view, abort.signal);
    } catch (error) {
      // Both are worth knowing; the sweep's own error is the one that ends the command.
      await putToSleep(options, abort.signal, view).catch((reason: unknown) =>
        view.note(reason instanceof Error ? reason.message : String(reason)),
      );
      throw error;
    }
    await putToSleep(options, abort.signal, view);
    return code;
  } finally {
    view.close();
    await prepared.close();
  }
}

/** What is only used later must not fail later. @throws ImageError, ResultsError */
async function checkNamedFolders({ images, heldOut, resume, out }: TuneOptions): Promise<void> {
  for (const folder of [images, heldOut]) if (folder !== null) await listImages(folder);
  if (resume && out === null && newestUnfinished(resultsRoot) === null)
    throw new ResultsError(
      "invalid",
      `there is no unfinished sweep in ${resultsRoot}/ to go on with: name its folder with --out DIR, or leave out --resume`,
    );
}

/** Shows what a sweep will miss. @throws TargetError when it would not work */
async function refuseUnready(
  { servers, variants, checks: own }: PreparedTarget,
  view: LiveView,
): Promise<void> {
  if (servers === null) return;
  const checks = [...own, ...(await checkServers(servers, variants))];
  if (anyFailed(checks))
    throw new TargetError(`the server is not ready for a sweep:\n${renderChecks(checks)}`);
  for (const { name, state, found } of own) if (state === "warning") view.note(`${name}: ${found}`);
}

async function sweep(
  options: TuneOptions,
  prepared: PreparedTarget,
  meter: CostMeter | null,
  view: LiveView,
  signal: AbortSignal,
): Promise<ExitCode> {
  const accuracy = await accuracyOf(options, prepared);
  const folder = ResultsFolder.open(resultsFolderFor(options), options.resume);
  try {
    meter?.addEarlier(folder.earlierS);
    if (meter) view.showCost(() => meter.usd);
    for (const note of folder.notes) view.note(note);
    view.note(`results: ${folder.path}`);
    const target = await prepared.open(dilationsOf(folder.previousManifest));
    try {
      for (const note of [...target.notes, ...accuracy.notes]) view.note(note);
      const result = await tune(
        target,
        folder,
        {
          variants: prepared.variants,
          slo: options.slo ?? prepared.slo ?? defaultSlo,
          goalRatePerS: options.goalRatePerS,
          load: options.load,
          effort: options.effort,
          seed: options.seed,
          imageFolder: options.images ?? imagesFolder,
          transport: options.transport,
          project: { name: packageJson.name, version: packageJson.version },
          options: z.record(z.string(), z.json()).parse(options),
          price: prepared.price,
          cost: meter,
          maxMinutes: options.maxMinutes,
          race: options.race,
          explore: options.explore,
          replicas: options.replicas,
          accuracy: accuracy.settings,
          notes: accuracy.notes,
        },
        { onEvent: (event) => view.onEvent(event), signal },
      );
      view.close();
      const report = join(folder.path, reportFileName);
      const tableColour = wantsColour(process.stdout, process.env);
      process.stdout.write(
        options.json ? `${JSON.stringify(result, null, 2)}\n` : renderSummary(result, report, tableColour),
      );
      const hasWinner = result.recommendation.variant !== null && result.endedEarly === null;
      if (options.apply && options.stack !== null && hasWinner)
        await applyRecommendation(
          folder.path,
          options.stack,
          options.yes,
          (text) => void process.stderr.write(text),
        );
      return exitCodeOf(result, signal.aborted);
    } finally {
      await target.close();
    }
  } finally {
    folder.close();
  }
}

/** Where --after scale-to-zero was asked for, but not done. */
function remindOfCost(
  { after, stack }: Pick<TuneOptions, "after" | "stack">,
  view: LiveView,
  goOn: string,
): void {
  if (after === null || stack === null) return;
  view.note(
    `stack ${stack} is still awake and costs money: ${goOn}, or ` +
      `pulumi config set asleep true --stack ${stack} && pulumi up --stack ${stack}`,
  );
}

/** --after scale-to-zero. Who interrupts a sweep may want to go on with it, so then the stack stays as it is, with a reminder. */
async function putToSleep({ after, stack }: TuneOptions, signal: AbortSignal, view: LiveView): Promise<void> {
  if (after === null || stack === null) return;
  view.close();
  if (signal.aborted) {
    remindOfCost({ after, stack }, view, `npm run tune -- --stack ${stack} --resume`);
    return;
  }
  view.note(`stack ${stack} is put to sleep`);
  await scaleToZero(process.cwd(), stack, (text) => void process.stderr.write(text));
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
  onInterruption((_, isAgain) => {
    if (isAgain) process.exit(exitCodes.interrupted);
    view.note("interrupted: stopping the trial; run the same command with --resume to go on");
    abort.abort();
  });
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
