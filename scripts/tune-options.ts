/** Command line of `npm run tune`. Pure: words in, options, help or complaints out; it touches no file and never exits. */
import { Command, type Option } from "commander";
import { DEFAULT_MAX_RATE_PER_S } from "../targets/limited-load";
import type { Slo } from "../tuning/trial";
import { complainAboutStrangers, parseCommandLine, type CommandLine } from "./command-line";
import { exitCodeHelp } from "./exit-codes";
import {
  addressesOf,
  commonRules,
  type Complaints,
  namesOf,
  numberOf,
  switchOrNumberOf,
  sloOf,
  textOf,
  urlsOf,
  countsOf,
  wordOf,
  wordsOf,
  type NumberRule,
  type Raw,
} from "./option-values";
import {
  addStackRunOptions,
  readStackRunOptions,
  type RawStackRunOptions,
  type StackRunOptions,
} from "./stack-options";
import {
  addModelRunOptions,
  readModelRunOptions,
  type ModelRunOptions,
  type RawModelRunOptions,
} from "./model-options";
import { complainAboutTarget, type RawTargetOptions } from "./target-options";

/** Servers that run already. */
export interface AddressOptions {
  /** host:port of gRPC; the first one is measured, all of them together show how the rate scales. */
  readonly addresses: readonly string[];
  /** URLs of /metrics in the same order; null: port 8002 of the same hosts. */
  readonly metrics: readonly string[] | null;
}

/** What the user asked for, defaults filled in. */
export interface TuneOptions extends StackRunOptions, ModelRunOptions {
  /** Names of the variants to measure, in this order; null: all that the target can serve. */
  readonly variants: readonly string[] | null;
  /** File of variants of other models; null: the catalogue's variants. */
  readonly variantsFile: string | null;
  /** With neither this nor `stack`: the local server. */
  readonly triton: AddressOptions | null;
  /** Name of a deployed stack. */
  readonly stack: string | null;
  /** The user knows that the stack serves production. */
  readonly yesProd: boolean;
  /** Hard limit on the load that is offered to servers that run already, requests per second; null: the target's default. */
  readonly maxRatePerS: number | null;
  /** Numbers of replicas whose rate together is measured; null: all that there are are tried once, at the operating rate. */
  readonly replicas: readonly number[] | null;
  /** Null: the stack's, and p95 within 100 ms elsewhere. */
  readonly slo: Slo | null;
  /** Requests per second to be reached; null when only the limit is asked for. */
  readonly goalRatePerS: number | null;
  /** A variant that is clearly worse than the best one so far is given up early. */
  readonly race: boolean;
  /** Configurations that nobody wrote down to measure at most, after the variants; 0: none. */
  readonly explore: number;
  /** Wall minutes after which the sweep ends with what it has; null: no limit. */
  readonly maxMinutes: number | null;
  readonly load: "poisson" | "constant" | "users";
  readonly effort: "quick" | "thorough";
  /** Number of load worker processes; null: chosen by the machine. */
  readonly workers: number | null;
  /** The workers on this machine wait awake for each planned send this long, milliseconds; 0: they sleep. */
  readonly busyWaitMs: number;
  readonly seed: number;
  /** Results folder; null: a new one below `results/`. */
  readonly out: string | null;
  /** Go on with an earlier sweep: that of `out`, or the newest unfinished one. */
  readonly resume: boolean;
  /** Folder of payload images; null: those of the project. */
  readonly images: string | null;
  /** Wall seconds per model second; null: probed for each variant. */
  readonly timeDilation: number | null;
  readonly transport: "lean" | "grpc-js";
  /** Print result.json on standard output instead of the table. */
  readonly json: boolean;
}

export type TuneCommandLine = CommandLine<TuneOptions>;

/** Where neither the command line nor the target has one. */
export const defaultSlo: Slo = { quantile: 0.95, boundMs: 100 };

const defaults = {
  explore: "3",
  load: "poisson",
  seed: "1",
  timeDilation: "auto",
  transport: "lean",
} as const;
const loads = ["poisson", "constant", "users"] as const;
const transports = ["lean", "grpc-js"] as const;

const rules = {
  goalRate: { min: 0.001, max: 1e6, integer: false, fix: "a rate in requests per second, e.g. 1500" },
  maxRate: { min: 1, max: 1e6, integer: false, fix: "a rate in requests per second, e.g. 300" },
  explore: { min: 1, max: 20, integer: true, fix: "a whole number from 1 to 20" },
  maxMinutes: { min: 0.1, max: 1e5, integer: false, fix: "wall minutes from 0.1, e.g. 10" },
  ...commonRules,
  timeDilation: { min: 1, max: 1000, integer: false, fix: "a factor from 1 to 1000, or auto" },
} satisfies Record<string, NumberRule>;

interface RawOptions extends RawTargetOptions, RawStackRunOptions, RawModelRunOptions {
  slo?: Raw;
  goalRate?: Raw;
  race?: true;
  explore?: Raw;
  maxMinutes?: Raw;
  load?: Raw;
  quick?: true;
  thorough?: true;
  seed?: Raw;
  out?: Raw;
  resume?: true;
  transport?: Raw;
  json?: true;
}

/**
 * Parses the words after `tune`.
 * @param knownVariants names that --variants may use
 */
export function parseTuneCommandLine(
  words: readonly string[],
  knownVariants: readonly string[],
  name: "tune" | "preflight" = "tune",
): TuneCommandLine {
  const command = tuneCommand(knownVariants, name);
  return parseCommandLine(command, words, (complaints) => {
    complainAboutStrangers(command, complaints);
    return readOptions(command.opts<RawOptions>(), knownVariants, complaints);
  });
}

const descriptions = {
  tune:
    "Finds, for every variant, the highest request rate that holds the SLO, names its bottleneck, and recommends one.\n" +
    "Without options: all variants on a local server with a simulated T4.",
  preflight:
    "Checks what a sweep with these options needs, without load on the server unless --wire asks for it.\n" +
    "What is served stays served; models of --variants-file that are not loaded are loaded for a moment, to read their tensors.",
} as const;

/** The command with all options; values are optional to commander, so that every missing one is reported, not only the first. */
function tuneCommand(knownVariants: readonly string[], name: keyof typeof descriptions): Command {
  const command = new Command(name);
  return addStackRunOptions(
    addModelRunOptions(command)
      .description(descriptions[name])
      .option("--variants [A,B]", `variants to measure: ${knownVariants.join(", ")} (default: documents)`)
      .option(
        "--triton [HOST:PORT]",
        "measure a Triton that runs already, by its gRPC address; several replicas: A,B (default: a local server with a simulated T4)",
      )
      .option(
        "--metrics [URL]",
        "its metrics; several: URL,URL (default: port 8002 of the same host, /metrics)",
      )
      .option(
        "--variants-file [FILE]",
        "YAML list of own variants (docs/variants.md): model, maxBatchSize, instanceCount ...",
      )
      .option("--stack [NAME]", "measure a stack that pulumi up deployed, with its own load generator")
      .option(
        "--yes-prod",
        "measure a stack whose environment is prod: its users share the servers with the sweep",
      )
      .option(
        "--replicas [1,2]",
        "also measure what so many servers hold together (default: try all of them once)",
      )
      .option(
        "--max-rate [N]",
        `never offer it more than N requests per second (default: ${DEFAULT_MAX_RATE_PER_S}; with --stack: what its load generator is sized for)`,
      )
      .option(
        "--slo [pQ=BOUND]",
        "percentile and bound of the response time (default: the stack's, else p95=100ms)",
      )
      .option(
        "--goal-rate [N]",
        "also say whether N requests per second are reached, by which variant, with how much room",
      )
      .option("--race", "give a variant up as soon as it is clearly worse than the best one so far")
      .option(
        "--explore [N]",
        `then look for a better configuration that nobody wrote down (batch size, instances, queue delay), and measure up to N (default: ${defaults.explore})`,
      )
      .option("--max-minutes [N]", "end with the best answer so far after N minutes (default: no limit)")
      .option("--load [KIND]", `poisson, constant, or users as in the documents (default: ${defaults.load})`)
      .option("--quick", "few short trials (default)")
      .option("--thorough", "more and longer trials: narrower intervals")
      .option("--workers [N]", "load worker processes (default: auto)")
      .option(
        "--busy-wait-ms [MS]",
        "they wait awake this long for each planned send: less lateness for a core each (default: 0)",
      )
      .option("--seed [N]", `seed of all random choices (default: ${defaults.seed})`)
      .option("--out [DIR]", "results folder (default: results/<start time>)")
      .option("--resume", "go on with the sweep in --out, or with the newest unfinished one in results/")
      .option("--images [DIR]", "folder of JPEG or PNG images to send (default: the project's)")
      .option(
        "--time-dilation [F]",
        `wall seconds per model second of the simulated T4 (default: ${defaults.timeDilation})`,
      )
      .option("--transport [NAME]", `lean or grpc-js (default: ${defaults.transport})`)
      .option("--json", "print result.json on standard output; progress goes to standard error")
      .helpOption("-h, --help", "show this help")
      .configureHelp({ optionTerm: (option: Option) => option.flags.replace("[", "<").replace("]", ">") })
      .addHelpText("after", `\n${exitCodeHelp}`)
      // Strangers are reported together with all other complaints.
      .allowUnknownOption()
      .allowExcessArguments(),
  );
}

function readOptions(raw: RawOptions, knownVariants: readonly string[], complaints: Complaints): TuneOptions {
  const text = (value: Raw, option: string, example: string) => textOf(value, option, example, complaints);
  if (raw.quick && raw.thorough)
    complaints.list.push("--quick and --thorough exclude each other: give one of them");

  const variants = text(raw.variants, "--variants", knownVariants.slice(0, 2).join(","));
  const variantsFile = text(raw.variantsFile, "--variants-file", "variants.yaml");
  const triton = text(raw.triton, "--triton", "localhost:8001");
  const metrics = text(raw.metrics, "--metrics", "http://localhost:8002/metrics");
  const maxRate = text(raw.maxRate, "--max-rate", "300");
  const maxMinutes = text(raw.maxMinutes, "--max-minutes", "10");
  const stack = text(raw.stack, "--stack", "dev");
  const replicas = text(raw.replicas, "--replicas", "1,2");
  complainAboutTarget(raw, complaints);
  const slo = text(raw.slo, "--slo", "p95=100ms");
  const goalRate = text(raw.goalRate, "--goal-rate", "1500");
  const load = text(raw.load, "--load", "users") ?? defaults.load;
  const workers = text(raw.workers, "--workers", "4") ?? "auto";
  const busyWaitMs = text(raw.busyWaitMs, "--busy-wait-ms", "2");
  const seed = text(raw.seed, "--seed", "7") ?? defaults.seed;
  const timeDilation = text(raw.timeDilation, "--time-dilation", "2") ?? defaults.timeDilation;
  const transport = text(raw.transport, "--transport", "grpc-js") ?? defaults.transport;
  const number = (value: string, option: string, rule: NumberRule) =>
    numberOf(value, option, rule, complaints);

  const isRunning = raw.triton !== undefined || raw.stack !== undefined;
  const models = readModelRunOptions(raw, isRunning, raw.timeDilation !== undefined, complaints);

  // The fallbacks below are never used: a null has left a complaint.
  return {
    ...readStackRunOptions(raw, raw.stack !== undefined, isRunning, complaints),
    ...models,
    variants:
      variants === null
        ? null
        : raw.stack === undefined && models.executor !== "onnx"
          ? namesOf(variants, "--variants", knownVariants, complaints)
          : wordsOf(variants, "--variants", complaints),
    variantsFile,
    triton:
      triton === null
        ? null
        : {
            addresses: addressesOf(triton, "--triton", complaints) ?? [],
            metrics: metrics === null ? null : urlsOf(metrics, "--metrics", complaints),
          },
    stack,
    yesProd: raw.yesProd ?? false,
    replicas: replicas === null ? null : countsOf(replicas, "--replicas", complaints),
    maxMinutes: maxMinutes === null ? null : number(maxMinutes, "--max-minutes", rules.maxMinutes),
    maxRatePerS: maxRate === null ? null : number(maxRate, "--max-rate", rules.maxRate),
    slo: slo === null ? null : sloOf(slo, "--slo", complaints),
    goalRatePerS: goalRate === null ? null : number(goalRate, "--goal-rate", rules.goalRate),
    race: raw.race ?? false,
    explore: switchOrNumberOf(raw.explore, "--explore", rules.explore, defaults.explore, complaints) ?? 0,
    load: wordOf(load, "--load", loads, complaints) ?? "poisson",
    effort: raw.thorough ? "thorough" : "quick",
    workers: workers === "auto" ? null : number(workers, "--workers", rules.workers),
    busyWaitMs: (busyWaitMs === null ? null : number(busyWaitMs, "--busy-wait-ms", rules.busyWaitMs)) ?? 0,
    seed: number(seed, "--seed", rules.seed) ?? 1,
    out: text(raw.out, "--out", "results/mine"),
    resume: raw.resume ?? false,
    images: text(raw.images, "--images", "photos"),
    timeDilation:
      timeDilation === "auto" ? null : number(timeDilation, "--time-dilation", rules.timeDilation),
    transport: wordOf(transport, "--transport", transports, complaints) ?? "lean",
    json: raw.json ?? false,
  };
}
