/** Checks of a variant: every problem at once, with the key it is about and how to fix it. */
import type { ModelArtefact, TensorSpec, Variant } from "./variant";

export interface Problem {
  /** Key path, e.g. `variants[2].maxBatchSize`. */
  readonly path: string;
  /** What is wrong and how to fix it. */
  readonly message: string;
}

/** One or more variants that cannot be served. The message has a line a problem. */
export class InvalidVariantError extends Error {
  override readonly name = "InvalidVariantError";
  constructor(readonly problems: readonly Problem[]) {
    super(problems.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  }
}

/** Limits of the settings. */
export const limits = {
  /** A batch of 1024 images is 617 MB of input alone: more is a mistake, not a wish. */
  maxBatchSize: 1024,
  /** Every instance holds its own copy of the engines in the 16 GB of a T4. */
  instanceCount: 32,
  /** Ten seconds; a queue delay above the SLO bound can never be useful. */
  queueDelayUs: 10_000_000,
  /** So that a name fits a Kubernetes label and a bucket path. */
  nameLength: 63,
} as const;

export const namePattern = /^[a-z0-9_]+$/;

function integerProblem(value: unknown, low: number, high: number): string | null {
  if (typeof value !== "number") return `${JSON.stringify(value)} is no number; use ${low} to ${high}`;
  if (!Number.isInteger(value)) return `${value} is not a whole number; use ${low} to ${high}`;
  return value < low || value > high ? `${value} is out of range; use ${low} to ${high}` : null;
}

export function nameProblem(name: unknown): string | null {
  if (typeof name !== "string" || !namePattern.test(name))
    return `${JSON.stringify(name)} is no name: use lower-case letters, digits and _ (it becomes the model's name and a folder)`;
  return name.length > limits.nameLength
    ? `${name.length} characters are too many; use at most ${limits.nameLength}`
    : null;
}

function maxBatchProblem({ maxBatchSize, artefact }: Variant): string | null {
  const { builtMaxBatchSize: built, name } = artefact;
  const range = integerProblem(maxBatchSize, 1, limits.maxBatchSize);
  if (range !== null || built === null || maxBatchSize <= built) return range;
  return (
    `${maxBatchSize} is above the ${built} that artefact ${name} was built for: a larger batch is a conversion proposal, ` +
    `not a serving setting. Use at most ${built}, or convert an artefact for batch ${maxBatchSize}`
  );
}

function preferredProblems(preferred: unknown, maxBatchSize: number, path: string): Problem[] {
  if (!Array.isArray(preferred))
    return [
      { path, message: `${JSON.stringify(preferred)} is not a list; use e.g. [${maxBatchSize}] or []` },
    ];
  return (preferred as unknown[]).flatMap((size, index) => {
    const at = `${path}[${index}]`;
    if (typeof size !== "number" || !Number.isInteger(size) || size < 1)
      return [
        {
          path: at,
          message: `${JSON.stringify(size)} is no batch size; use whole numbers from 1 to ${maxBatchSize}`,
        },
      ];
    if (Number.isInteger(maxBatchSize) && maxBatchSize >= 1 && size > maxBatchSize)
      return [
        {
          path: at,
          message: `${size} is above maxBatchSize ${maxBatchSize}; lower it, or raise maxBatchSize`,
        },
      ];
    return preferred.indexOf(size) < index
      ? [{ path: at, message: `${size} is named twice; remove one` }]
      : [];
  });
}

function tensorProblems(tensor: TensorSpec, path: string): Problem[] {
  const bad = tensor.dims.some((dim) => !Number.isInteger(dim) || dim < 1) || tensor.dims.length === 0;
  return [
    ...(tensor.name === ""
      ? [{ path: `${path}.name`, message: "is empty; use the tensor's name in the model" }]
      : []),
    ...(bad
      ? [
          {
            path: `${path}.dims`,
            message: `[${tensor.dims.join(", ")}] is no shape; use whole numbers from 1, without the batch`,
          },
        ]
      : []),
  ];
}

function artefactProblems(artefact: ModelArtefact, path: string): Problem[] {
  const name = nameProblem(artefact.name);
  const { builtMaxBatchSize: built, precision } = artefact;
  const builtProblem = built === null ? null : integerProblem(built, 1, limits.maxBatchSize);
  const hasEngines = artefact.platform === "tensorflow_savedmodel" || artefact.platform === "tensorrt_plan";
  const unbuilt = hasEngines && precision !== "original" && built === null;
  return [
    ...(name === null ? [] : [{ path: `${path}.name`, message: name }]),
    ...(builtProblem === null ? [] : [{ path: `${path}.builtMaxBatchSize`, message: builtProblem }]),
    ...(unbuilt
      ? [
          {
            path: `${path}.builtMaxBatchSize`,
            message: `is missing: ${precision} engines are built for a largest batch; say which`,
          },
        ]
      : []),
    ...tensorProblems(artefact.input, `${path}.input`),
    ...tensorProblems(artefact.output, `${path}.output`),
  ];
}

/** All problems of a variant; empty when it can be served. */
export function variantProblems(variant: Variant, path = "variant"): Problem[] {
  const settings: readonly (readonly [string, string | null])[] = [
    ["name", nameProblem(variant.name)],
    ["maxBatchSize", maxBatchProblem(variant)],
    ["instanceCount", integerProblem(variant.instanceCount, 1, limits.instanceCount)],
    ["queueDelayUs", integerProblem(variant.queueDelayUs, 0, limits.queueDelayUs)],
  ];
  return [
    ...settings.flatMap(([key, message]) => (message === null ? [] : [{ path: `${path}.${key}`, message }])),
    ...preferredProblems(variant.preferredBatchSizes, variant.maxBatchSize, `${path}.preferredBatchSizes`),
    ...artefactProblems(variant.artefact, `${path}.artefact`),
  ];
}

/** All problems of several variants that are to be served by one repository, including names used twice. */
export function variantsProblems(variants: readonly Variant[], path = "variants"): Problem[] {
  const names = variants.map(({ name }) => name);
  return variants.flatMap((variant, index) => [
    ...variantProblems(variant, `${path}[${index}]`),
    ...(names.indexOf(variant.name) < index
      ? [
          {
            path: `${path}[${index}].name`,
            message: `"${variant.name}" is used twice; give every variant its own name`,
          },
        ]
      : []),
  ]);
}

/** @throws InvalidVariantError */
export function assertValidVariants(variants: readonly Variant[], path?: string): void {
  const problems = variantsProblems(variants, path);
  if (problems.length > 0) throw new InvalidVariantError(problems);
}
