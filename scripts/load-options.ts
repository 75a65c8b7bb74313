/** Command line of `npm run load`. Pure: words in, options, help or complaints out; it touches no file and never exits. */
import type { Arrivals, LoadProfile } from "../loadgen/load-profile";
import type { StopRule } from "../loadgen/stop-rule";
import { didYouMean } from "../model-repo/nearest-name";
import type { Slo } from "../tuning/trial";
import { complainAboutStrangers, parseCommandLine, type CommandLine } from "./command-line";
import { loadCommand, type RawLoadOptions } from "./load-help";
import { arrivalKinds, rampOf, rangeOf, secondsOf, stepsOf, stopRuleOf } from "./load-values";
import {
  addressesOf,
  commonRules,
  type Complaints,
  numberOf,
  sloOf,
  textOf,
  wordOf,
  type NumberRule,
  type Raw,
} from "./option-values";

/** Where the requests go. */
export type LoadTarget =
  /** host:port or dns:///NAME:port of running servers. */
  | { readonly kind: "running"; readonly addresses: readonly string[] }
  /** An embedded server with a simulated T4 that serves this variant of the catalogue. */
  | { readonly kind: "local"; readonly variant: string; readonly timeDilation: number };

/** A load whose arrivals stand in a file that has not been read yet. */
export interface RecordedFile {
  readonly kind: "file";
  readonly file: string;
}

export interface LoadOptions {
  readonly target: LoadTarget;
  /** Null: the only model that is ready. */
  readonly model: string | null;
  /** Null: as the model says. */
  readonly inputDims: readonly number[] | null;
  /** Null: those of the project. */
  readonly images: string | null;
  readonly load: LoadProfile | RecordedFile;
  readonly warmupS: number;
  /** Null: 30 s, or as long as the load itself changes. */
  readonly durationS: number | null;
  readonly slo: Slo;
  readonly stopWhen: StopRule | null;
  readonly deadlineMs: number;
  /** Null: chosen from the load. */
  readonly maxInFlight: number | null;
  readonly connections: number;
  readonly newConnectionPerRequest: boolean;
  /** Null: plain text. */
  readonly tls: { readonly caFile: string | null; readonly serverName: string } | null;
  readonly transport: "lean" | "grpc-js";
  /** Null: chosen by the machine. */
  readonly workers: number | null;
  /** The workers wait awake for each planned send this long, milliseconds; 0: they sleep. */
  readonly busyWaitMs: number;
  readonly seed: number;
  /** `-` is standard output; null: none. */
  readonly json: string | null;
  readonly hdr: string | null;
  readonly csv: string | null;
}

export type LoadCommandLine = CommandLine<LoadOptions>;

const rules = {
  rate: { min: 0.001, max: 1e6, integer: false, fix: "a rate in requests per second, e.g. 400" },
  users: { min: 1, max: 1e6, integer: true, fix: "a whole number of users, e.g. 3000" },
  spawnRate: { min: 0.001, max: 1e6, integer: false, fix: "users per second, e.g. 5" },
  concurrency: { min: 1, max: 100_000, integer: true, fix: "a whole number of requests in flight, e.g. 16" },
  samples: { min: 1, max: 1e9, integer: true, fix: "a whole number of requests, e.g. 200" },
  maxInFlight: { min: 1, max: 1e6, integer: true, fix: "a whole number of requests, e.g. 1000" },
  connections: { min: 1, max: 1000, integer: true, fix: "a whole number from 1 to 1000" },
  ...commonRules,
  timeDilation: { min: 1, max: 1000, integer: false, fix: "a factor from 1 to 1000" },
} satisfies Record<string, NumberRule>;

const DEFAULT_RATE_PER_S = 50;
/** Users are all there at once: a fixed number in flight has nothing to spawn. */
const AT_ONCE_PER_S = 1e6;
/** The documents' think time, seconds. */
const defaultThink = { from: 0.8, to: 1.2 };
const defaultSpawnPerS = 5;

/** Parses the words after `load`. @param knownVariants names that --variant may use */
export function parseLoadCommandLine(
  words: readonly string[],
  knownVariants: readonly string[],
): LoadCommandLine {
  const command = loadCommand(knownVariants);
  return parseCommandLine(command, words, (complaints) => {
    complainAboutStrangers(command, complaints);
    return new Reader(command.opts<RawLoadOptions>(), knownVariants, complaints).read();
  });
}

class Reader {
  constructor(
    private readonly raw: RawLoadOptions,
    private readonly knownVariants: readonly string[],
    private readonly complaints: Complaints,
  ) {}

  read(): LoadOptions {
    const { raw, complaints } = this;
    const minSamples = this.number(raw.minSamples, "--min-samples", "200", rules.samples);
    const stopText = this.text(raw.stopWhen, "--stop-when", "'p95>100ms/10s'");
    if (raw.minSamples !== undefined && raw.stopWhen === undefined)
      complaints.list.push("--min-samples goes with --stop-when");
    const sloText = this.text(raw.slo, "--slo", "p95=100ms") ?? "p95=100ms";
    const slo = sloOf(sloText, "--slo", complaints) ?? { quantile: 0.95, boundMs: 100 };
    const deadlineS = this.seconds(raw.deadline, "--deadline", "5s", { min: 0.001, max: 600 });
    const workers = this.text(raw.workers, "--workers", "4");
    return {
      target: this.target(),
      model: this.text(raw.model, "--model", "my_model"),
      inputDims: this.dims(),
      images: this.text(raw.images, "--images", "photos"),
      load: this.load(),
      warmupS: this.seconds(raw.warmup, "--warmup", "5s", { min: 0, max: 3600 }) ?? this.defaultWarmupS(),
      durationS: this.seconds(raw.duration, "--duration", "30s", { min: 0.1, max: 7 * 86_400 }),
      slo,
      stopWhen: stopText === null ? null : stopRuleOf(stopText, minSamples, "--stop-when", complaints),
      deadlineMs: (deadlineS ?? Math.max(5, (10 * slo.boundMs) / 1000)) * 1000,
      maxInFlight: this.number(raw.maxInFlight, "--max-in-flight", "1000", rules.maxInFlight),
      connections: this.number(raw.connections, "--connections", "4", rules.connections) ?? 4,
      newConnectionPerRequest: raw.newConnectionPerRequest ?? false,
      tls: this.tls(),
      transport:
        wordOf(
          this.text(raw.transport, "--transport", "grpc-js") ?? "lean",
          "--transport",
          ["lean", "grpc-js"],
          complaints,
        ) ?? "lean",
      workers:
        workers === null || workers === "auto"
          ? null
          : numberOf(workers, "--workers", rules.workers, complaints),
      busyWaitMs: this.number(raw.busyWaitMs, "--busy-wait-ms", "2", rules.busyWaitMs) ?? 0,
      seed: this.number(raw.seed, "--seed", "7", rules.seed) ?? 1,
      json: raw.json === true ? "-" : (raw.json ?? null),
      hdr: this.text(raw.hdr, "--hdr", "load.hlog"),
      csv: this.text(raw.csv, "--csv", "load.csv"),
    };
  }

  private target(): LoadTarget {
    const { raw, complaints } = this;
    const triton = this.text(raw.triton, "--triton", "localhost:8001");
    const variant = this.text(raw.variant, "--variant", this.knownVariants[0] ?? "");
    const timeDilation = this.number(raw.timeDilation, "--time-dilation", "2", rules.timeDilation);
    if (triton !== null) {
      if (variant !== null)
        complaints.list.push(
          "--variant is for the local server: name a model of the running one with --model",
        );
      if (timeDilation !== null)
        complaints.list.push("--time-dilation is for the local server: a running one has its own time");
      addressesOf(triton.replaceAll("dns:///", ""), "--triton", complaints);
      return { kind: "running", addresses: triton.split(",").map((address) => address.trim()) };
    }
    for (const [option, given] of [
      ["--model", raw.model],
      ["--input-dims", raw.inputDims],
      ["--tls", raw.tls],
    ] as const)
      if (given !== undefined)
        complaints.list.push(`${option} is for a running server: name one with --triton HOST:PORT`);
    const name = variant ?? this.knownVariants[0]!;
    if (!this.knownVariants.includes(name))
      complaints.add(
        "--variant",
        name,
        `is not a known variant${didYouMean(name, this.knownVariants) || "."}`,
      );
    return { kind: "local", variant: name, timeDilation: timeDilation ?? 1 };
  }

  private load(): LoadProfile | RecordedFile {
    const { raw, complaints } = this;
    const given = (
      [
        ["--rate", raw.rate],
        ["--ramp", raw.ramp],
        ["--steps", raw.steps],
        ["--users", raw.users],
        ["--concurrency", raw.concurrency],
        ["--arrivals-file", raw.arrivalsFile],
      ] as const
    ).filter(([, value]) => value !== undefined);
    if (given.length > 1)
      complaints.list.push(
        `${given.map(([option]) => option).join(" and ")} exclude each other: give one load`,
      );
    for (const [option, value] of [
      ["--spawn-rate", raw.spawnRate],
      ["--think", raw.think],
    ] as const)
      if (value !== undefined && raw.users === undefined) complaints.list.push(`${option} goes with --users`);
    const arrivals = this.arrivals();
    if (
      raw.arrivals !== undefined &&
      given.some(([option]) => !["--rate", "--ramp", "--steps"].includes(option))
    )
      complaints.list.push("--arrivals goes with --rate, --ramp and --steps");
    return (
      this.rate(arrivals) ??
      this.changing(arrivals) ??
      this.closed() ??
      this.recorded() ?? { kind: arrivals, ratePerS: DEFAULT_RATE_PER_S }
    );
  }

  private rate(kind: Arrivals): LoadProfile | null {
    const ratePerS = this.number(this.raw.rate, "--rate", "400", rules.rate);
    return ratePerS === null ? null : { kind, ratePerS };
  }

  private changing(arrivals: Arrivals): LoadProfile | null {
    const rampText = this.text(this.raw.ramp, "--ramp", "0..500/60s");
    const stepsText = this.text(this.raw.steps, "--steps", "100x30s,200x30s");
    const ramp = rampText === null ? null : rampOf(rampText, "--ramp", this.complaints);
    const steps = stepsText === null ? null : stepsOf(stepsText, "--steps", this.complaints);
    if (ramp !== null) return { kind: "ramp", ...ramp, arrivals };
    return steps === null ? null : { kind: "steps", steps, arrivals };
  }

  private closed(): LoadProfile | null {
    const { raw } = this;
    const users = this.number(raw.users, "--users", "3000", rules.users);
    const spawnPerS = this.number(raw.spawnRate, "--spawn-rate", "5", rules.spawnRate) ?? defaultSpawnPerS;
    const thinkText = this.text(raw.think, "--think", "0.8..1.2");
    const think = thinkText === null ? defaultThink : rangeOf(thinkText, "--think", this.complaints);
    if (users !== null)
      return { kind: "users", users, spawnPerS, thinkMinS: think?.from ?? 0, thinkMaxS: think?.to ?? 0 };
    const inFlight = this.number(raw.concurrency, "--concurrency", "16", rules.concurrency);
    if (inFlight === null) return null;
    return { kind: "users", users: inFlight, spawnPerS: AT_ONCE_PER_S, thinkMinS: 0, thinkMaxS: 0 };
  }

  private recorded(): RecordedFile | null {
    const file = this.text(this.raw.arrivalsFile, "--arrivals-file", "arrivals.csv");
    return file === null ? null : { kind: "file", file };
  }

  private arrivals(): Arrivals {
    const word = this.text(this.raw.arrivals, "--arrivals", "constant");
    if (word === null) return "poisson";
    return wordOf(word, "--arrivals", arrivalKinds, this.complaints) ?? "poisson";
  }

  /** A load that changes is measured from its first request: its beginning is part of it. */
  private defaultWarmupS(): number {
    const { ramp, steps, users, arrivalsFile } = this.raw;
    return [ramp, steps, users, arrivalsFile].some((value) => value !== undefined) ? 0 : 3;
  }

  private dims(): readonly number[] | null {
    const text = this.text(this.raw.inputDims, "--input-dims", "224,224,3");
    if (text === null) return null;
    const dims = text.split(",").map(Number);
    if (dims.length === 3 && dims.every((dim) => Number.isSafeInteger(dim) && dim >= 1)) return dims;
    return this.complaints.add("--input-dims", text, "give HEIGHT,WIDTH,3 or 3,HEIGHT,WIDTH, e.g. 224,224,3");
  }

  private tls(): LoadOptions["tls"] {
    const { raw } = this;
    const caFile = this.text(raw.tlsCa, "--tls-ca", "ca.pem");
    const serverName = this.text(raw.tlsName, "--tls-name", "triton.example") ?? "";
    if (raw.tls === undefined && (raw.tlsCa !== undefined || raw.tlsName !== undefined))
      this.complaints.list.push("--tls-ca and --tls-name go with --tls");
    return raw.tls === undefined ? null : { caFile, serverName };
  }

  private text(raw: Raw, option: string, example: string): string | null {
    return textOf(raw, option, example, this.complaints);
  }

  private number(raw: Raw, option: string, example: string, rule: NumberRule): number | null {
    const text = this.text(raw, option, example);
    return text === null ? null : numberOf(text, option, rule, this.complaints);
  }

  private seconds(
    raw: Raw,
    option: string,
    example: string,
    range: { readonly min: number; readonly max: number },
  ): number | null {
    const text = this.text(raw, option, example);
    return text === null ? null : secondsOf(text, option, range, this.complaints);
  }
}
