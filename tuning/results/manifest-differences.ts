/** What differs between two sweeps: for a resumed one, and for comparing two results. Pure. */
import { canonicalJson } from "./canonical";
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
    ...variantDifferences(before, after),
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
