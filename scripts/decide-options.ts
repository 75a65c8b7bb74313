/** Command line of `npm run decide`. Pure. */
import { Command } from "commander";
import { parseCommandLine, type CommandLine } from "./command-line";
import { type Complaints, numberOf, textOf, type NumberRule, type Raw } from "./option-values";

export interface DecideOptions {
  /** Results folder; null: the newest finished one in `results/`. */
  readonly folder: string | null;
  /** Load to be served, requests per second. */
  readonly loadPerS: number;
  readonly spareReplicas: number;
  /** Share of the operating rate kept free. */
  readonly margin: number;
  /** Serving node whose price counts; null: none was named, so the sweep's own if it knows its price, else `defaultMachine`. */
  readonly machine: Machine | null;
}

/** A serving node, as far as its price depends on it. */
export interface Machine {
  readonly machineType: string;
  readonly gpuType: string;
  /** Null: the price table's default region. */
  readonly region: string | null;
  readonly spot: boolean;
}

export type DecideCommandLine = CommandLine<DecideOptions>;

/** The stack's default serving node. */
export const defaultMachine: Machine = {
  machineType: "n1-standard-8",
  gpuType: "nvidia-tesla-t4",
  region: null,
  spot: false,
};

const defaults = { spare: "1", margin: "10" } as const;

const rules = {
  load: { min: 0.001, max: 1e9, integer: false, fix: "a rate in requests per second, e.g. 5000" },
  spare: { min: 0, max: 100, integer: true, fix: "a whole number from 0 to 100" },
  margin: { min: 0, max: 90, integer: false, fix: "percent from 0 to 90" },
} satisfies Record<string, NumberRule>;

interface RawOptions {
  for?: Raw;
  spare?: Raw;
  margin?: Raw;
  machine?: Raw;
  gpu?: Raw;
  region?: Raw;
  spot?: true;
}

/** Parses the words after `decide`. */
export function parseDecideCommandLine(words: readonly string[]): DecideCommandLine {
  const command = new Command("decide")
    .description(
      "Says how many replicas of which variant serve a load, what they cost, and when to scale.\n" +
        "Reads the result of a sweep and writes recommendation.yaml beside it.",
    )
    .argument("[DIR]", "results folder (default: the newest finished one in results/)")
    .option("--for [N]", "load to be served, requests per second; required")
    .option(
      "--spare [N]",
      `replicas that may be lost while the rest hold the SLO (default: ${defaults.spare})`,
    )
    .option(
      "--margin [PERCENT]",
      `share of the operating rate kept free for peaks (default: ${defaults.margin})`,
    )
    .option(
      "--machine [TYPE]",
      `machine type of a serving node (default: the sweep's, or ${defaultMachine.machineType})`,
    )
    .option(
      "--gpu [TYPE]",
      `accelerator type of a serving node (default: the sweep's, or ${defaultMachine.gpuType})`,
    )
    .option("--region [NAME]", "region for the prices (default: the price table's)")
    .option("--spot", "spot prices")
    .configureHelp({ optionTerm: (option) => option.flags.replace("[", "<").replace("]", ">") });
  return parseCommandLine(command, words, (complaints) =>
    readOptions(command.opts<RawOptions>(), command.args[0] ?? null, complaints),
  );
}

function readOptions(raw: RawOptions, folder: string | null, complaints: Complaints): DecideOptions {
  const text = (value: Raw, option: string, example: string) => textOf(value, option, example, complaints);
  const number = (value: string, option: string, rule: NumberRule) =>
    numberOf(value, option, rule, complaints) ?? 0;
  if (raw.for === undefined)
    complaints.list.push("--for is missing: give the load to be served, e.g. --for 5000");
  const load = text(raw.for, "--for", "5000");
  return {
    folder,
    loadPerS: load === null ? 0 : number(load, "--for", rules.load),
    spareReplicas: number(text(raw.spare, "--spare", "1") ?? defaults.spare, "--spare", rules.spare),
    margin: number(text(raw.margin, "--margin", "10") ?? defaults.margin, "--margin", rules.margin) / 100,
    machine: machineOf(raw, text),
  };
}

function machineOf(
  raw: RawOptions,
  text: (value: Raw, option: string, example: string) => string | null,
): Machine | null {
  const { machineType, gpuType } = defaultMachine;
  const named = [raw.machine, raw.gpu, raw.region, raw.spot].some((option) => option !== undefined);
  if (!named) return null;
  return {
    machineType: text(raw.machine, "--machine", machineType) ?? machineType,
    gpuType: text(raw.gpu, "--gpu", gpuType) ?? gpuType,
    region: text(raw.region, "--region", "europe-west4"),
    spot: raw.spot ?? false,
  };
}
