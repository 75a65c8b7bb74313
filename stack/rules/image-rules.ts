import { catalogue, tensorrtVariants } from "../../model-repo/catalogue";
import type { ConfigKey } from "../config-keys";
import type { ConfigRule } from "../config-rules";
import {
  brokenWorkloadIdentity,
  compareReleases,
  imageProblem,
  imageRelease,
  lastTensorFlowRelease,
  parseRelease,
} from "../versions";

/** The catalogue's variants by the path that makes their artefacts. */
const variantsOf = { "tf-trt": catalogue, "onnx-tensorrt": tensorrtVariants } as const;

/** Rules of images and releases. */
export const imageRules: readonly ConfigRule[] = [
  release("tritonVersion", false),
  release("converterVersion", true),
  exactImage("tritonImage"),
  exactImage("converterImage"),
  exactImage("loadImage"),
  {
    keys: ["tritonVersion"],
    problem: ({ tritonVersion }) => {
      const version = parseRelease(tritonVersion);
      const { from, to } = brokenWorkloadIdentity;
      return version && compareReleases(version, from) >= 0 && compareReleases(version, to) <= 0
        ? `${tritonVersion} cannot read a private bucket with Workload Identity (22.08 to 23.02 are affected); use 23.03 or newer`
        : null;
    },
  },
  {
    keys: ["tritonVersion", "variant", "repositoryVariants"],
    problem: ({ tritonVersion, variants }) => {
      const version = parseRelease(tritonVersion);
      const savedModels = variants.repository.filter(
        (variant) => variant.artefact.platform === "tensorflow_savedmodel",
      );
      return version && compareReleases(version, lastTensorFlowRelease) > 0 && savedModels.length > 0
        ? `${tritonVersion} has no TensorFlow backend, but ${names(savedModels)} are SavedModels; use 25.02 or older, or variants of the path onnx-tensorrt`
        : null;
    },
  },
  {
    keys: ["artefactPath", "variant", "repositoryVariants"],
    problem: ({ artefactPath, variants }) => {
      const wrong = variants.repository.filter(
        (variant) => (variant.artefact.platform === "tensorflow_savedmodel") !== (artefactPath === "tf-trt"),
      );
      return wrong.length > 0
        ? `${artefactPath} does not make ${names(wrong)} (${wrong[0]?.artefact.platform}); use the other path, or variants of this one: ${names(variantsOf[artefactPath])}`
        : null;
    },
  },
  {
    keys: ["converterVersion", "tritonVersion"],
    problem: ({ converterRelease, tritonVersion }) =>
      converterRelease === tritonVersion
        ? null
        : `engines of ${converterRelease} do not load in Triton ${tritonVersion}: TensorRT must be the same; leave it empty, or set both alike`,
  },
  sameRelease("tritonImage", "tritonVersion"),
  sameRelease("converterImage", "converterVersion"),
  {
    keys: ["imageDigests"],
    problem: ({ imageDigests }) => {
      const bad = Object.entries(imageDigests).filter(([, digest]) => !/^sha256:[0-9a-f]{64}$/.test(digest));
      return bad.length > 0
        ? `${bad.map(([image]) => image).join(", ")}: not a digest (sha256: and 64 hexadecimal digits); run scripts/resolve-digests.ts`
        : null;
    },
  },
];

function names(variants: readonly { readonly name: string }[]): string {
  return variants.map((variant) => variant.name).join(", ");
}

function release(key: "tritonVersion" | "converterVersion", mayBeEmpty: boolean): ConfigRule {
  return {
    keys: [key],
    problem: (config) =>
      (mayBeEmpty && config[key] === "") || parseRelease(config[key])
        ? null
        : `"${config[key]}" is not a release; use YY.MM, e.g. 25.02`,
  };
}

function exactImage(key: "tritonImage" | "converterImage" | "loadImage"): ConfigRule {
  return { keys: [key], problem: (config) => (config[key] === "" ? null : imageProblem(config[key])) };
}

/** The release in a given image's tag must be the configured one, because everything else is decided by that. */
function sameRelease(
  imageKey: "tritonImage" | "converterImage",
  versionKey: ConfigKey & ("tritonVersion" | "converterVersion"),
): ConfigRule {
  return {
    keys: [imageKey, versionKey, "tritonVersion"],
    problem: (config) => {
      const image = config[imageKey];
      const expected = config[versionKey] || config.tritonVersion;
      const found = imageRelease(image);
      const text = found && `${String(found.year).padStart(2, "0")}.${String(found.month).padStart(2, "0")}`;
      return image === "" || text === undefined || text === expected
        ? null
        : `is release ${text}, but ${versionKey} says ${expected}; set both alike`;
    },
  };
}
