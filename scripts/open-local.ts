/** The targets on this machine: the embedded server, with a simulated T4 or with ONNX Runtime on the CPU. */
import { availableParallelism } from "node:os";
import { catalogue, findArtefact, findVariants, namedVariants } from "../model-repo/catalogue";
import { knownNames } from "../model-repo/nearest-name";
import { defaultOnnxFolder, onnxVariants, readOnnxModels } from "../model-repo/onnx-models";
import type { Variant } from "../model-repo/variant";
import { variantsOfArtefacts } from "../targets/artefact-variants";
import { openLocalTarget } from "../targets/local";
import { openOnnxTarget } from "../targets/local-onnx";
import { TargetError } from "../targets/target-error";
import type { PreparedTarget } from "./open-target";
import type { TuneOptions } from "./tune-options";
import { readVariantsFile } from "./variants-option";

type LocalTarget = Pick<PreparedTarget, "variants" | "reference" | "heldOut" | "open">;

/** @throws TargetError, InvalidVariantError, UnknownNameError, OnnxModelsError */
export async function prepareLocal(options: TuneOptions, imageFolder: string): Promise<LocalTarget> {
  return options.executor === "onnx" ? prepareOnnx(options) : prepareSimulated(options, imageFolder);
}

async function prepareSimulated(options: TuneOptions, imageFolder: string): Promise<LocalTarget> {
  const { workers, busyWaitMs, timeDilation, variantsFile } = options;
  const variants =
    variantsFile !== null
      ? variantsOfArtefacts(await readVariantsFile(variantsFile), findArtefact)
      : options.variants === null
        ? catalogue
        : findVariants(options.variants);
  const reference = named(options.reference ?? "original", [...variants, ...namedVariants]);
  const local = {
    variants,
    reference,
    imageFolder,
    workers,
    busyWaitMs,
    timeDilation,
    moreMayCome: options.explore > 0,
    cores: availableParallelism(),
  };
  return {
    variants,
    reference,
    heldOut: null,
    open: (knownDilations) => openLocalTarget({ ...local, knownDilations }),
  };
}

async function prepareOnnx(options: TuneOptions): Promise<LocalTarget> {
  const { workers, busyWaitMs, variantsFile } = options;
  const models = readOnnxModels(options.models ?? defaultOnnxFolder);
  const all = onnxVariants(models);
  const names = models.artefacts.map(({ name }) => name);
  const artefactOf = (name: string) => {
    const found = models.artefacts.find((artefact) => artefact.name === name);
    if (found !== undefined) return found;
    throw new TargetError(`${models.folder} has no model "${name}"${knownNames(name, names, "models")}`);
  };
  const variants =
    variantsFile !== null
      ? variantsOfArtefacts(await readVariantsFile(variantsFile), artefactOf)
      : (options.variants?.map((name) => named(name, all)) ?? all);
  const unconverted = all.find(({ artefact }) => artefact.precision === "original");
  const reference =
    options.reference !== null
      ? named(options.reference, [...variants, ...all])
      : (unconverted ?? `${models.folder} has no unconverted model; name a variant with --reference`);
  const served =
    typeof reference === "string" || variants.includes(reference) ? variants : [...variants, reference];
  return {
    variants,
    reference,
    heldOut: models.heldOutFolder,
    open: () =>
      openOnnxTarget({ models, variants: served, workers, busyWaitMs, cores: availableParallelism() }),
  };
}

/** @throws TargetError that lists the known ones */
function named(name: string, variants: readonly Variant[]): Variant {
  const found = variants.find((variant) => variant.name === name);
  if (found !== undefined) return found;
  const names = [...new Set(variants.map((variant) => variant.name))];
  throw new TargetError(`there is no variant "${name}"${knownNames(name, names, "variants")}`);
}
