/**
 * Zones with an NVIDIA T4 by region. Source: the zone map of GoogleCloudPlatform/ai-on-gke (2025), which lists zones that have
 * both L4 and T4; more zones have T4 alone. The live table is
 * `gcloud compute accelerator-types list --filter=name=nvidia-tesla-t4`; zones that are missing here go into the key
 * `acceleratorZones`.
 */
const t4ZoneLetters: Readonly<Record<string, string>> = {
  "asia-east1": "ac",
  "asia-northeast1": "ac",
  "asia-northeast3": "b",
  "asia-south1": "ab",
  "asia-southeast1": "abc",
  "europe-west1": "bc",
  "europe-west2": "ab",
  "europe-west3": "b",
  "europe-west4": "abc",
  "us-central1": "abc",
  "us-east1": "cd",
  "us-east4": "ac",
  "us-west1": "ab",
  "us-west4": "a",
};

/** Regions of the table. */
export const t4Regions: readonly string[] = Object.keys(t4ZoneLetters);

/** Zones of a region that have the accelerator: the table's (T4 only) and the given further ones, without repeats. */
export function acceleratorZones(gpuType: string, region: string, further: readonly string[]): string[] {
  const letters = gpuType === "nvidia-tesla-t4" ? (t4ZoneLetters[region] ?? "") : "";
  const known = [...letters].map((letter) => `${region}-${letter}`);
  return [...new Set([...known, ...further.filter((zone) => zone.startsWith(`${region}-`))])];
}
