/** Command line of `npm run tune`. Pure: words in, options, help or complaints out; it touches no file and never exits. */
import { Command, CommanderError, Option } from "commander";
import { didYouMean } from "../model-repo/nearest-name";
import type { Slo } from "../tuning/trial";
import { exitCodeHelp } from "./exit-codes";
import {
  Complaints,
  namesOf,
  numberOf,
  sloOf,
  textOf,
  wordOf,
  type NumberRule,
  type Raw,
} from "./option-values";

/** What the user asked for, defaults filled in. */
export interface TuneOptions {
  /** Names of the variants to measure, in this order. */
  readonly variants: readonly string[];
  readonly slo: Slo;
  /** Requests per second to be reached; null when only the limit is asked for. */
  readonly goalRatePerS: number | null;
  readonly load: "poisson" | "constant" | "users";
  readonly effort: "quick" | "thorough";
  /** Number of load worker processes; null: chosen by the machine. */
  readonly workers: number | null;
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

export type TuneCommandLine =
  | { readonly kind: "run"; readonly options: TuneOptions }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "invalid"; readonly errors: readonly string[] };

const defaults = {
  slo: "p95=100ms",
  load: "poisson",
  seed: "1",
  timeDilation: "auto",
  transport: "lean",
} as const;
const loads = ["poisson", "constant", "users"] as const;
const transports = ["lean", "grpc-js"] as const;

const rules = {
  goalRate: { min: 0.001, max: 1e6, integer: false, fix: "a rate in requests per second, e.g. 1500" },
  workers: { min: 1, max: 64, integer: true, fix: "a whole number from 1 to 64, or auto" },
  seed: { min: 0, max: 2 ** 32 - 1, integer: true, fix: "a whole number from 0 to 4294967295" },
  timeDilation: { min: 1, max: 1000, integer: false, fix: "a factor from 1 to 1000, or auto" },
} satisfies Record<string, NumberRule>;

interface RawOptions {
  variants?: Raw;
  slo?: Raw;
  goalRate?: Raw;
  load?: Raw;
  quick?: true;
  thorough?: true;
  workers?: Raw;
  seed?: Raw;
  out?: Raw;
  resume?: true;
  images?: Raw;
  timeDilation?: Raw;
  transport?: Raw;
  json?: true;
}

/**
 * Parses the words after `tune`.
 * @param knownVariants names that --variants may use; all of them are measured when it is absent
 */
export function parseTuneCommandLine(
  words: readonly string[],
  knownVariants: readonly string[],
): TuneCommandLine {
  const command = tuneCommand(knownVariants);
  let help = "";
  command.exitOverride().configureOutput({ writeOut: (text) => (help += text), writeErr: () => {} });
  try {
    command.parse(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? { kind: "help", text: help } : { kind: "invalid", errors: [error.message] };
  }
  const complaints = new Complaints();
  complainAboutStrangers(command, complaints);
  const options = readOptions(command.opts<RawOptions>(), knownVariants, complaints);
  return complaints.list.length > 0 ? { kind: "invalid", errors: complaints.list } : { kind: "run", options };
}

/** The command with all options; values are optional to commander, so that every missing one is reported, not only the first. */
function tuneCommand(knownVariants: readonly string[]): Command {
  return (
    new Command("tune")
      .description(
        "Finds, for every variant, the highest request rate that holds the SLO, names its bottleneck, and recommends one.\n" +
          "Without options: all variants on a local server with a simulated T4.",
      )
      .option("--variants [A,B]", `variants to measure: ${knownVariants.join(", ")} (default: all)`)
      .option("--slo [pQ=BOUND]", `percentile and bound of the response time (default: ${defaults.slo})`)
      .option(
        "--goal-rate [N]",
        "also say whether N requests per second are reached, by which variant, with how much room",
      )
      .option("--load [KIND]", `poisson, constant, or users as in the documents (default: ${defaults.load})`)
      .option("--quick", "few short trials (default)")
      .option("--thorough", "more and longer trials: narrower intervals")
      .option("--workers [N]", "load worker processes (default: auto)")
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
      .allowExcessArguments()
  );
}

function complainAboutStrangers(command: Command, complaints: Complaints): void {
  const known = command.options.map((option) => option.long ?? "");
  for (const [index, word] of command.args.entries()) {
    const before = command.args[index - 1] ?? "";
    if (word.startsWith("-")) {
      const name = word.split("=")[0] ?? word;
      complaints.list.push(`unknown option ${name}${didYouMean(name, known)} See --help.`);
    } else if (!before.startsWith("-")) {
      complaints.list.push(`unexpected word "${word}": every value follows its option. See --help.`);
    }
  }
}

function readOptions(raw: RawOptions, knownVariants: readonly string[], complaints: Complaints): TuneOptions {
  const text = (value: Raw, option: string, example: string) => textOf(value, option, example, complaints);
  if (raw.quick && raw.thorough)
    complaints.list.push("--quick and --thorough exclude each other: give one of them");

  const variants = text(raw.variants, "--variants", knownVariants.slice(0, 2).join(","));
  const slo = text(raw.slo, "--slo", defaults.slo) ?? defaults.slo;
  const goalRate = text(raw.goalRate, "--goal-rate", "1500");
  const load = text(raw.load, "--load", "users") ?? defaults.load;
  const workers = text(raw.workers, "--workers", "4") ?? "auto";
  const seed = text(raw.seed, "--seed", "7") ?? defaults.seed;
  const timeDilation = text(raw.timeDilation, "--time-dilation", "2") ?? defaults.timeDilation;
  const transport = text(raw.transport, "--transport", "grpc-js") ?? defaults.transport;
  const number = (value: string, option: string, rule: NumberRule) =>
    numberOf(value, option, rule, complaints);

  // The fallbacks below are never used: a null has left a complaint.
  return {
    variants:
      variants === null ? knownVariants : (namesOf(variants, "--variants", knownVariants, complaints) ?? []),
    slo: sloOf(slo, "--slo", complaints) ?? { quantile: 0.95, boundMs: 100 },
    goalRatePerS: goalRate === null ? null : number(goalRate, "--goal-rate", rules.goalRate),
    load: wordOf(load, "--load", loads, complaints) ?? "poisson",
    effort: raw.thorough ? "thorough" : "quick",
    workers: workers === "auto" ? null : number(workers, "--workers", rules.workers),
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
