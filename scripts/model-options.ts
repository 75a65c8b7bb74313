/** Options of the tune command about what infers here and about the accuracy check. Pure. */
import type { Command } from "commander";
import { textOf, wordOf, wordsOf, type Complaints, type Raw } from "./option-values";

export interface ModelRunOptions {
  /** What the local server executes models with. */
  readonly executor: (typeof executors)[number];
  /** Folder of prepared ONNX models; null: where the conversion leaves them. */
  readonly models: string | null;
  /** False: speed counts whatever a variant answers. */
  readonly accuracy: boolean;
  /** Variant that conversions are compared with; null: the target's unconverted model. */
  readonly reference: string | null;
  /** Folder of held-out images; null: the target's, or the project's. */
  readonly heldOut: string | null;
  /** File of limits by precision; null: the defaults. */
  readonly accuracyLimits: string | null;
  /** Manifests that say how fast the models of a running server are alone; null: none. */
  readonly conversionManifest: readonly string[] | null;
}

const executors = ["simulated-t4", "onnx"] as const;

/** As commander delivers them. */
export interface RawModelRunOptions {
  executor?: Raw;
  models?: Raw;
  /** Commander's form of --no-accuracy. */
  accuracy?: boolean;
  reference?: Raw;
  heldOut?: Raw;
  accuracyLimits?: Raw;
  conversionManifest?: Raw;
}

/** Declares them. */
export function addModelRunOptions(command: Command): Command {
  return command
    .option(
      "--executor [NAME]",
      "what the local server infers with: simulated-t4 (default), or onnx: ONNX Runtime on this machine's CPU, for real",
    )
    .option(
      "--models [DIR]",
      "folder of ONNX models that npm run convert -- --local prepared, for --executor onnx",
    )
    .option(
      "--no-accuracy",
      "do not compare the answers of conversions with those of the unconverted model first",
    )
    .option("--reference [NAME]", "variant to compare answers with (default: original)")
    .option("--held-out [DIR]", "folder of images to compare answers on; none that INT8 was calibrated with")
    .option("--accuracy-limits [FILE]", "YAML file of how far answers may differ, by precision")
    .option(
      "--conversion-manifest [FILE]",
      "manifest.json of a conversion of the models of --triton: served rates are shown as shares of the models' own speed; several: A,B",
    );
}

/** @param isRunning --triton or --stack was given: the server is not ours */
export function readModelRunOptions(
  raw: RawModelRunOptions,
  isRunning: boolean,
  hasTimeDilation: boolean,
  complaints: Complaints,
): ModelRunOptions {
  const complain = (sentence: string): void => void complaints.list.push(sentence);
  const executor = textOf(raw.executor, "--executor", "onnx", complaints) ?? executors[0];
  if (isRunning && raw.executor !== undefined)
    complain("--executor is for the local server: leave out --triton and --stack");
  if (raw.models !== undefined && executor !== "onnx") complain("--models goes with --executor onnx");
  if (executor === "onnx" && hasTimeDilation)
    complain("--time-dilation is for the simulated T4: ONNX Runtime runs in real time; leave it out");
  const manifests = textOf(raw.conversionManifest, "--conversion-manifest", "manifest.json", complaints);
  const accuracy = raw.accuracy ?? true;
  for (const [option, value] of [
    ["--reference", raw.reference],
    ["--held-out", raw.heldOut],
    ["--accuracy-limits", raw.accuracyLimits],
  ] as const)
    if (!accuracy && value !== undefined) complain(`${option} and --no-accuracy exclude each other`);
  return {
    executor: wordOf(executor, "--executor", executors, complaints) ?? executors[0],
    models: textOf(raw.models, "--models", "onnx-models", complaints),
    accuracy,
    reference: textOf(raw.reference, "--reference", "original", complaints),
    heldOut: textOf(raw.heldOut, "--held-out", "photos", complaints),
    accuracyLimits: textOf(raw.accuracyLimits, "--accuracy-limits", "limits.yaml", complaints),
    conversionManifest: manifests === null ? null : wordsOf(manifests, "--conversion-manifest", complaints),
  };
}
