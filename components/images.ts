/**
 * Every image that the stack runs, with its exact version. `scripts/resolve-digests.ts` turns the tags into digests and
 * writes them into the stack's config key `imageDigests`.
 */
export const images = {
  /** Triton Inference Server; the month comes from config. */
  triton: (version: string) => `nvcr.io/nvidia/tritonserver:${version}-py3`,
  /** TF-TRT converter; its TensorRT equals the same month's Triton. */
  tensorflow: (version: string) => `nvcr.io/nvidia/tensorflow:${version}-tf2-py3`,
  /** trtexec converter; its TensorRT equals the same month's Triton. */
  tensorrt: (version: string) => `nvcr.io/nvidia/tensorrt:${version}-py3`,
  prometheus: "quay.io/prometheus/prometheus:v3.13.5",
  grafana: "docker.io/grafana/grafana:12.1.1",
  prometheusAdapter: "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0",
  /** Built into every COS node image and never pulled: the tag names no version that could be pinned. */
  cosGpuInstaller: "cos-nvidia-installer:fixed",
  pause: "gke.gcr.io/pause:3.8",
} as const;

/**
 * Replaces a tagged image by its digest where one is known.
 * @param digests image reference with tag to `sha256:...`
 */
export function pinned(image: string, digests: Readonly<Record<string, string>>): string {
  const digest = digests[image];
  return digest === undefined ? image : `${image}@${digest}`;
}
