/** `npm run load`: one load on one server, and whether the SLO held. */
import { availableParallelism } from "node:os";
import { LoadSpecError } from "../loadgen/check-spec";
import { InterruptedError } from "../loadgen/controller-run";
import { ModelDescriptionError } from "../loadgen/describe-model";
import { toCsv, toHdrLog } from "../loadgen/history/exports";
import type { RecordedSecond } from "../loadgen/history/load-second";
import { RunRecorder } from "../loadgen/history/run-recorder";
import { describeLoad, peakRatePerS, type LoadProfile } from "../loadgen/load-profile";
import type { LoadProgress, LoadResult, LoadSpec, TlsOptions } from "../loadgen/load-spec";
import { MOST_LATENESS_SHARE } from "../loadgen/merge-result";
import { startLocalCluster, type LocalCluster } from "../loadgen/local-cluster";
import { parseArrivalTimes, RecordingError } from "../loadgen/recorded-arrivals";
import { plainAddress } from "../loadgen/targets";
import { catalogue } from "../model-repo/catalogue";
import { imagesFolder } from "../model-repo/repository";
import { defaultWorkers } from "../targets/address";
import { busyWaitNotes } from "../targets/busy-wait";
import { addressesHere } from "../targets/same-machine";
import { exitCodes, type ExitCode } from "./exit-codes";
import { isInputError } from "./input-errors";
import { onInterruption } from "./interrupts";
import { checkWritable, FileError, read, write } from "./load-files";
import { parseLoadCommandLine, type LoadOptions, type RecordedFile } from "./load-options";
import { judgeLoad, loadJson, progressLine, renderLoad } from "./load-report";
import { openTarget, type OpenLoadTarget } from "./load-target";

/** Every so many replies one is decoded: a server that answers fast with nonsense is noticed. */
const CHECK_EVERY = 50;
/** Measured time of a load that has no end of its own, seconds. */
const DEFAULT_DURATION_S = 30;
/** In-flight cap of an open loop: a queue of so many bounds at the peak rate (Little's law) has failed the SLO anyway. */
const IN_FLIGHT_BOUNDS = 10;
const LEAST_IN_FLIGHT = 256;
/** Longest wait for answers after Ctrl-C, milliseconds: as long as the longest usual deadline. A second Ctrl-C ends it. */
const GRACE_MS = 20_000;

async function main(words: readonly string[]): Promise<ExitCode> {
  const commandLine = parseLoadCommandLine(
    words,
    catalogue.map(({ name }) => name),
  );
  if (commandLine.kind === "help") {
    process.stdout.write(commandLine.text);
    return exitCodes.ok;
  }
  if (commandLine.kind === "invalid") {
    for (const error of commandLine.errors) process.stderr.write(`load: ${error}\n`);
    return exitCodes.badInput;
  }
  try {
    return await run(commandLine.options);
  } catch (error) {
    const kinds = [LoadSpecError, ModelDescriptionError, RecordingError, FileError];
    if (!isInputError(error) && !kinds.some((kind) => error instanceof kind)) throw error;
    process.stderr.write(`load: ${(error as Error).message.replaceAll("\n", "\nload: ")}\n`);
    return exitCodes.badInput;
  }
}

async function run(options: LoadOptions): Promise<ExitCode> {
  for (const [option, file] of filesOf(options)) await checkWritable(option, file);
  const shape = await shapeOf(options.load);
  const tls = await tlsOf(options);
  const target = await openTarget(options, tls);
  try {
    const spec = specOf(options, shape, tls, target);
    const seconds: RecordedSecond[] = [];
    const cores = availableParallelism();
    const { busyWaitMs } = options;
    const workers = options.workers ?? defaultWorkers(cores);
    const isServerHere = addressesHere(target.addresses.map(plainAddress)).length > 0;
    for (const note of busyWaitNotes({ busyWaitMs, workers, cores, isServerHere }))
      process.stderr.write(`${note}\n`);
    const cluster = await startLocalCluster({
      workers,
      busyWaitMs,
      observe: (controller) =>
        new RunRecorder({
          listener: { second: (_, second) => void seconds.push(second) },
          workers: () => {
            const workers = controller().workers();
            const inFlight = workers.reduce((sum, { heartbeat }) => sum + (heartbeat?.inFlight ?? 0), 0);
            return { count: workers.length, inFlight };
          },
        }),
    });
    try {
      const result = await measure(cluster, spec, options);
      if (result === null) return exitCodes.interrupted;
      await writeOutputs(options, spec, result, seconds);
      return result.stop?.interrupted === true
        ? exitCodes.interrupted
        : judgeLoad(spec, result, options.slo).exitCode;
    } finally {
      await cluster.close();
    }
  } finally {
    await target.close();
  }
}

/** Null: interrupted before the load began. */
async function measure(
  cluster: LocalCluster,
  spec: LoadSpec,
  { slo }: LoadOptions,
): Promise<LoadResult | null> {
  let shown = false;
  let phase = "";
  const show = (progress: LoadProgress): void => {
    if (process.stderr.isTTY !== true) {
      // A log gets a line a phase, a terminal one line that is rewritten.
      if (progress.phase !== phase) process.stderr.write(`${progress.phase}\n`);
      phase = progress.phase;
      return;
    }
    process.stderr.write(
      `\r\u001b[2K${progressLine(progress, slo)}`.slice(0, 8 + (process.stderr.columns ?? 100)),
    );
    shown = true;
  };
  const stopListening = onInterruption((signal, isAgain) => {
    void cluster.controller.end(`interrupted (${signal})`, isAgain ? 0 : GRACE_MS);
  });
  try {
    return await cluster.run(spec, show);
  } catch (error) {
    if (error instanceof InterruptedError) return null;
    throw error;
  } finally {
    stopListening();
    if (shown) process.stderr.write("\r\u001b[2K");
  }
}

async function writeOutputs(
  options: LoadOptions,
  spec: LoadSpec,
  result: LoadResult,
  seconds: readonly RecordedSecond[],
): Promise<void> {
  const { json, slo } = options;
  const content = {
    "--json": () => loadJson(spec, result, slo),
    "--csv": () => toCsv(seconds.map(({ second }) => second)),
    "--hdr": () => toHdrLog(seconds, describeLoad(spec.shape)),
  };
  // First what needs no disk: one that is full must not cost the figures.
  (json === "-" ? process.stderr : process.stdout).write(renderLoad(spec, result, slo));
  if (json === "-") process.stdout.write(loadJson(spec, result, slo));
  for (const [option, file] of filesOf(options)) await write(option, file, content[option]());
}

function filesOf({ json, csv, hdr }: LoadOptions): ["--json" | "--csv" | "--hdr", string][] {
  const files = [
    ["--json", json === "-" ? null : json] as const,
    ["--csv", csv] as const,
    ["--hdr", hdr] as const,
  ];
  return files.flatMap(([option, file]) => (file === null ? [] : [[option, file]]));
}

function specOf(
  options: LoadOptions,
  shape: LoadProfile,
  tls: TlsOptions | undefined,
  target: OpenLoadTarget,
): LoadSpec {
  const { slo, stopWhen, warmupS, deadlineMs, transport, seed, newConnectionPerRequest } = options;
  const closed = shape.kind === "users" ? shape.users : LEAST_IN_FLIGHT;
  const needed = Math.ceil((peakRatePerS(shape) * slo.boundMs * IN_FLIGHT_BOUNDS) / 1000);
  return {
    id: `load-${Date.now().toString(36)}`,
    addresses: target.addresses,
    ...target.request,
    imageFolder: options.images ?? imagesFolder,
    knownAnswers: null,
    scoreTolerance: 1,
    checkEvery: CHECK_EVERY,
    shape,
    seed,
    warmupS,
    measureS: options.durationS ?? durationOf(shape, slo.boundMs),
    sloBoundMs: slo.boundMs,
    deadlineMs: Math.max(deadlineMs, slo.boundMs),
    maxInFlight: options.maxInFlight ?? (shape.kind === "users" ? closed : Math.max(LEAST_IN_FLIGHT, needed)),
    connectionsPerAddress: options.connections,
    transport,
    timeDilation: target.timeDilation,
    ...(stopWhen === null ? {} : { stopWhen }),
    ...(newConnectionPerRequest ? { newConnectionPerRequest } : {}),
    ...(tls === undefined ? {} : { tls }),
  };
}

/** As long as the load changes by itself, and the default for one that does not. */
function durationOf(shape: LoadProfile, sloBoundMs: number): number {
  switch (shape.kind) {
    case "ramp":
      return shape.overS;
    case "steps":
      return shape.steps.reduce((sum, { forS }) => sum + forS, 0);
    case "recorded":
      // The last arrival lies within the measured time, also when it is sent as late as is allowed.
      return shape.atS.at(-1)! + 0.001 + (MOST_LATENESS_SHARE * sloBoundMs) / 1000;
    case "users":
      return shape.users / shape.spawnPerS + DEFAULT_DURATION_S;
    default:
      return DEFAULT_DURATION_S;
  }
}

async function shapeOf(load: LoadProfile | RecordedFile): Promise<LoadProfile> {
  if (load.kind !== "file") return load;
  return { kind: "recorded", atS: parseArrivalTimes(await read("--arrivals-file", load.file), load.file) };
}

async function tlsOf({ tls }: LoadOptions): Promise<TlsOptions | undefined> {
  if (tls === null) return undefined;
  const caPem = tls.caFile === null ? "" : await read("--tls-ca", tls.caFile);
  return { caPem, serverName: tls.serverName };
}

// Whoever reads may have seen enough (`| head`).
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(
      `load: unexpected error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`,
    );
    process.exitCode = exitCodes.unexpected;
  },
);
