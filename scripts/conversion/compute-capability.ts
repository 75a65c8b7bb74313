/**
 * Compute capability by accelerator type of Google Cloud (developer.nvidia.com/cuda-gpus). A TensorRT engine runs only on the
 * capability that it was built on. `model-repo/convert/gpu.py` has the same table, for the machine itself.
 */
export const computeCapability: Readonly<Record<string, string>> = {
  "nvidia-tesla-t4": "7.5",
  "nvidia-tesla-v100": "7.0",
  "nvidia-tesla-p4": "6.1",
  "nvidia-tesla-p100": "6.0",
  "nvidia-tesla-a100": "8.0",
  "nvidia-a100-80gb": "8.0",
  "nvidia-l4": "8.9",
  "nvidia-h100-80gb": "9.0",
};

/** Why engines built on one GPU could not be served by another, or null. Types that the table does not know must be the same. */
export function gpuMismatch(converter: string | null, serving: string): string | null {
  if (converter === serving) return null;
  if (converter === null) return `the conversion VM has no GPU, but ${serving} will serve`;
  const [built, served] = [computeCapability[converter], computeCapability[serving]];
  if (built !== undefined && built === served) return null;
  const named = (type: string, capability?: string) =>
    capability === undefined ? type : `${type} (compute capability ${capability})`;
  return `engines built on ${named(converter, built)} do not load on ${named(serving, served)}`;
}
