/** A monthly release of NVIDIA's containers, e.g. 25.02. */
export interface Release {
  readonly year: number;
  readonly month: number;
}

/** Reads `YY.MM`; undefined for anything else. */
export function parseRelease(text: string): Release | undefined {
  const match = /^(\d{2})\.(0[1-9]|1[0-2])$/.exec(text);
  return match ? { year: Number(match[1]), month: Number(match[2]) } : undefined;
}

/** Negative, zero or positive as a is older than, the same as or newer than b. */
export function compareReleases(a: Release, b: Release): number {
  return (a.year - b.year) * 12 + (a.month - b.month);
}

/** Last Triton with the TensorFlow backend, and last TensorFlow container with TF-TRT. */
export const lastTensorFlowRelease: Release = { year: 25, month: 2 };

/** Triton releases whose Google Cloud Storage client fails with Workload Identity (triton-inference-server/server#5039). */
export const brokenWorkloadIdentity: { readonly from: Release; readonly to: Release } = {
  from: { year: 22, month: 8 },
  to: { year: 23, month: 2 },
};

/** What is wrong with an image reference, or null: it must say exactly which version it is. */
export function imageProblem(image: string): string | null {
  if (/@sha256:[0-9a-f]{64}$/.test(image)) return null;
  if (image.includes("@"))
    return `"${image}" has no digest that could be one; use @sha256: and 64 hexadecimal digits`;
  const tag = /:([A-Za-z0-9_][A-Za-z0-9._-]*)$/.exec(image)?.[1];
  if (tag === undefined) return `"${image}" has no tag; use an exact one, e.g. ${image}:1.2.3, or a digest`;
  if (!/\d/.test(tag)) return `tag "${tag}" names no version and may move; use an exact tag or a digest`;
  return null;
}

/** Release in an image's tag, e.g. 25.02 in `nvcr.io/nvidia/tritonserver:25.02-py3`; undefined if there is none. */
export function imageRelease(image: string): Release | undefined {
  const match = /:(\d{2}\.\d{2})(?:-|@|$)/.exec(image);
  return match?.[1] === undefined ? undefined : parseRelease(match[1]);
}
