/** Builds a variant out of an object that a user wrote, e.g. in the stack's configuration. */
import { defaultMaxBatchSize, defaultQueueDelayUs, findArtefact } from "./artefacts";
import { knownNames } from "./nearest-name";
import { InvalidVariantError, variantProblems, type Problem } from "./validate-variant";
import type { ModelArtefact, Variant } from "./variant";

/** What may be written; everything but `artefact` has a default. */
export interface VariantObject {
  /** Default: made of the settings, as the documents name theirs, e.g. `tftrt_fp16_bs8_count4`. */
  readonly name?: string;
  /** Name of an artefact: `original`, `tftrt_<precision>_bs<n>` or `trt_<precision>_bs<n>`. */
  readonly artefact: string;
  /** Only a check: must be the artefact's precision. */
  readonly precision?: string;
  /** Default: what the artefact was built for; 64 for `original`. */
  readonly maxBatchSize?: number;
  /** Default 1. */
  readonly instanceCount?: number;
  /** Microseconds. Default 20000. */
  readonly queueDelayUs?: number;
  /** Default: the largest batch alone, as in the documents; [] for none. */
  readonly preferredBatchSizes?: readonly number[];
}

const keys = [
  "name",
  "artefact",
  "precision",
  "maxBatchSize",
  "instanceCount",
  "queueDelayUs",
  "preferredBatchSizes",
];

/** A name that tells every setting that differs from its default, so that different variants get different names. */
function settingsName(variant: Omit<Variant, "name" | "published">): string {
  const { artefact, maxBatchSize, instanceCount, queueDelayUs, preferredBatchSizes: preferred } = variant;
  const defaultBatch = artefact.builtMaxBatchSize ?? defaultMaxBatchSize;
  const ownPreferred = preferred.length !== 1 || preferred[0] !== maxBatchSize;
  return [
    artefact.name,
    maxBatchSize === defaultBatch ? "" : `_max${maxBatchSize}`,
    instanceCount === 1 ? "" : `_count${instanceCount}`,
    queueDelayUs === defaultQueueDelayUs ? "" : `_delay${queueDelayUs}`,
    !ownPreferred ? "" : preferred.length === 0 ? "_nopref" : `_pref${preferred.join("_")}`,
  ].join("");
}

/** Only what was left out gets its default; null or a wrong type is an error, never a wish for the default. */
function orDefault<T>(value: T | undefined, fallback: T): T {
  return value === undefined ? fallback : value;
}

function readArtefact(
  object: Partial<VariantObject>,
  path: string,
  problems: Problem[],
): ModelArtefact | null {
  const { artefact: name, precision } = object as { artefact?: unknown; precision?: unknown };
  const at = `${path}.artefact`;
  if (typeof name !== "string") {
    const message = `${name === undefined ? "is missing" : "is no text"}; use original or e.g. tftrt_fp16_bs8`;
    problems.push({ path: at, message });
    return null;
  }
  try {
    const artefact = findArtefact(name);
    if (precision !== undefined && precision !== artefact.precision) {
      const message = `${JSON.stringify(precision)} is not the precision of ${name}; leave it out, or name another artefact`;
      problems.push({ path: `${path}.precision`, message });
    }
    return artefact;
  } catch (error) {
    problems.push({ path: at, message: (error as Error).message });
    return null;
  }
}

/**
 * Reads a variant from outside data.
 * @param path how messages call it, e.g. `variants[2]`
 * @throws InvalidVariantError with all problems at once: unknown keys, unknown artefact, settings out of range
 */
export function variantFromObject(input: unknown, path = "variant"): Variant {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    throw new InvalidVariantError([
      { path, message: `is no object; use {"artefact": "tftrt_fp16_bs8", ...}` },
    ]);
  const problems: Problem[] = Object.keys(input)
    .filter((key) => !keys.includes(key))
    .map((key) => ({
      path: `${path}.${key}`,
      message: `is no key of a variant${knownNames(key, keys, "keys")}`,
    }));
  const object = input as Partial<VariantObject>;
  const artefact = readArtefact(object, path, problems);
  // Without its artefact the settings are still checked, against one that serves any batch.
  const checked = artefact ?? findArtefact("original");
  const maxBatchSize = orDefault(object.maxBatchSize, checked.builtMaxBatchSize ?? defaultMaxBatchSize);
  const settings = {
    artefact: checked,
    maxBatchSize,
    instanceCount: orDefault(object.instanceCount, 1),
    queueDelayUs: orDefault(object.queueDelayUs, defaultQueueDelayUs),
    preferredBatchSizes: orDefault(
      object.preferredBatchSizes,
      Number.isInteger(maxBatchSize) ? [maxBatchSize] : [],
    ),
  };
  const problemsOf = (name: string): Problem[] =>
    variantProblems({ ...settings, name, published: null }, path);
  problems.push(...problemsOf(orDefault(object.name, "unnamed")));
  if (problems.length > 0) throw new InvalidVariantError(problems);
  const name = object.name ?? settingsName(settings);
  const nameProblems = problemsOf(name);
  if (nameProblems.length > 0) throw new InvalidVariantError(nameProblems);
  return { ...settings, name, published: null };
}
