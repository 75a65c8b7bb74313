/** What differs between two sweeps, and what nobody can tell: for a resumed one, and for comparing two results. Pure. */
import { canonicalJson } from "./canonical";
import { clocksText, devicesText, powerLimitText, type GpuFacts } from "./gpu-facts";
import type { Manifest } from "./manifest";

/** Sentences, one a difference that may explain different numbers; empty when there is none. */
export function manifestDifferences(before: Manifest, after: Manifest): readonly string[] {
  const facts: [string, (manifest: Manifest) => string | number][] = [
    ["target", (m) => m.target.identity],
    ["server", (m) => `${m.target.serverName} ${m.target.serverVersion}`],
    ["SLO", (m) => `${m.slo.quantile} within ${m.slo.boundMs} ms`],
    ["load", (m) => m.load],
    ["seed", (m) => m.seed],
    ["workers", (m) => m.workers],
    ["images", (m) => m.imagesHash],
    ["project version", (m) => m.project.version],
    ["Node.js", (m) => m.node],
    ["host", (m) => `${m.host.cpuModel} (${m.host.cores} cores)`],
  ];
  return [
    ...facts.flatMap(([name, of]) => difference(name, of(before), of(after))),
    ...gpuDifferences(before.gpu ?? null, after.gpu ?? null),
    ...variantDifferences(before, after),
  ];
}

/**
 * What may differ without anybody knowing, in sentences: it was not recorded in one of the sweeps, or the server does not tell. What
 * a simulated server has not got is not missing.
 */
export function notCompared(before: Manifest, after: Manifest): readonly string[] {
  const later = new Map(after.variants.map((entry) => [entry.variant.name, entry]));
  const files = before.variants
    .filter(({ variant, modelHash }) => {
      const other = later.get(variant.name);
      return other !== undefined && (modelHash === null || other.modelHash === null);
    })
    .map(({ variant }) => variant.name);
  const [hidden] = [before, after].flatMap(gpuGap);
  return [
    ...(files.length > 0 ? [`model files of ${files.join(", ")}: a server does not show them`] : []),
    ...(hidden === undefined ? [] : [`GPU driver and clocks: ${hidden}`]),
  ];
}

/** Why a sweep does not say what its GPUs' driver and clocks were; none when it does, or has no GPU. */
function gpuGap({ gpu, target, facts }: Manifest): string[] {
  if (gpu) return gpu.notKnown === null ? [] : [gpu.notKnown];
  const hasNone = gpu === null || target.simulated || facts?.processor === "cpu";
  return hasNone ? [] : ["a sweep of an older version did not record them"];
}

function gpuDifferences(before: GpuFacts | null, after: GpuFacts | null): string[] {
  if (before === null || after === null) return [];
  /** What one of them does not know is no difference; `notCompared` says so. */
  const known = (name: string, of: (gpu: GpuFacts) => string | null): string[] =>
    of(before) === null || of(after) === null ? [] : difference(name, of(before), of(after));
  const names = (gpu: GpuFacts): string | null =>
    gpu.devices.length === 0 ? null : gpu.devices.map(({ uuid }) => uuid).join(", ");
  return [
    ...known("GPU", (gpu) => {
      const ids = names(gpu);
      return ids && (devicesText(gpu) === ids ? ids : `${devicesText(gpu)} (${ids})`);
    }),
    ...known("GPU driver", ({ driver }) => driver),
    ...known("GPU clocks", clocksText),
    ...known("GPU power limit", powerLimitText),
    ...known("machine image of the servers", ({ machineImage }) => machineImage),
  ];
}

function variantDifferences(before: Manifest, after: Manifest): string[] {
  const later = new Map(after.variants.map((entry) => [entry.variant.name, entry]));
  return before.variants.flatMap((entry) => {
    const other = later.get(entry.variant.name);
    if (!other) return [];
    const { name } = entry.variant;
    return [
      ...(canonicalJson(entry.variant) === canonicalJson(other.variant)
        ? []
        : [`settings of ${name} differ`]),
      ...difference(`model files of ${name}`, entry.modelHash, other.modelHash),
      ...(canonicalJson(entry.law) === canonicalJson(other.law)
        ? []
        : [`simulated service times of ${name} differ`]),
      ...difference(`time dilation of ${name}`, entry.timeDilation, other.timeDilation),
    ];
  });
}

type Fact = string | number | null;

function difference(name: string, before: Fact, after: Fact): string[] {
  if (before === after) return [];
  return [`${name}: ${short(before)} before, ${short(after)} now`];
}

/** Hashes are told apart by their first digits. */
function short(value: Fact): string {
  const text = value === null ? "unknown" : String(value);
  return /^[0-9a-f]{64}$/.test(text) ? text.slice(0, 12) : text;
}
