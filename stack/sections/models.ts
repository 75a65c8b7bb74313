import { join } from "node:path";
import * as components from "../../components";
import { conversionPlanObject } from "../../components/model-repository";
import type { StackConfig } from "../derived-config";
import { artefactsOf, conversionPlan, variantFiles, type ConversionSettings } from "../variants";
import type { Project } from "./project";

/** Folder of the model repository in the bucket. */
const repositoryPrefix = "models";

/** The convert package, uploaded for the VM. */
const packageFolder = join(__dirname, "..", "..", "model-repo", "convert");

export interface Models {
  readonly repository: components.ModelRepository;
  /** Undefined when the stack has none. */
  readonly conversionVm: components.ConversionVm | undefined;
}

/** The bucket with a folder for each variant, and the machine that fills them. */
export function createModels(
  config: StackConfig,
  project: Project,
  network: components.Network | undefined,
): Models {
  const variants = inNameOrder(config);
  const repository = new components.ModelRepository(
    "models",
    {
      project: config.project,
      location: config.region,
      existingBucket: config.existingBucket || undefined,
      prefix: repositoryPrefix,
      models: variants.map((variant) => ({
        name: variant.name,
        files: variantFiles(variant, config.sourceModel),
      })),
      conversionPlan: conversionPlan(variants, conversionSettings(config)),
      protect: config.protect,
      labels: config.resourceLabels,
    },
    project.after(project.services),
  );
  const { converterEmail } = project.accounts;
  const conversionVm =
    network !== undefined && converterEmail !== undefined
      ? new components.ConversionVm(
          "converter",
          {
            ...conversionVmArgs(config),
            network,
            serviceAccount: converterEmail,
            bucketName: repository.bucketName,
          },
          project.after(repository, network, project.accounts),
        )
      : undefined;
  return { repository, conversionVm };
}

/** The repository's own order puts the served variant first; plan and machine must not change when another one is served. */
function inNameOrder({ variants }: StackConfig): StackConfig["variants"]["repository"] {
  return [...variants.repository].sort((a, b) => a.name.localeCompare(b.name));
}

/** Folders of images in the model bucket, used unless others are named. */
const imageFolders = { calibration: "calibration", heldOut: "held-out" } as const;

function conversionSettings(config: StackConfig): ConversionSettings {
  return {
    image: config.converter,
    gpuType: config.gpuType,
    model: config.sourceModel,
    calibration: {
      source: config.calibrationImages || imageFolders.calibration,
      count: config.calibrationCount,
    },
    heldOut: { source: config.heldOutImages || imageFolders.heldOut, count: config.heldOutCount },
  };
}

function conversionVmArgs(
  config: StackConfig,
): Omit<components.ConversionVmArgs, "network" | "serviceAccount" | "bucketName"> {
  const variants = inNameOrder(config);
  return {
    project: config.project,
    zone: config.zonesUsed[0] ?? "",
    machineType: config.conversionMachineType,
    gpuType: config.gpuType,
    imageFamily: config.conversionImageFamily,
    image: config.conversionImage || undefined,
    diskGb: config.conversionDiskGb,
    maxLifetimeH: config.conversionMaxLifetimeH,
    spot: config.conversionSpot,
    jupyterLab: config.jupyterLab,
    repositoryPrefix,
    converterImage: config.converter,
    planObject: conversionPlanObject,
    packageFolder,
    requirements: config.converterRequirements,
    modelSource: config.sourceModel === "resnet50" ? null : config.sourceModel.source,
    calibrationImages: config.calibrationImages || imageFolders.calibration,
    heldOutImages: config.heldOutImages || imageFolders.heldOut,
    artefacts: artefactsOf(variants).map((artefact) => artefact.name),
    variants: variants.map((variant) => ({ name: variant.name, artefact: variant.artefact.name })),
    labels: config.resourceLabels,
  };
}
