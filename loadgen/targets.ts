/** Which servers a measurement may load, and how hard; names become addresses when the measurement starts. */
import { lookup } from "node:dns/promises";
import { LoadSpecError } from "./check-spec";
import { splitHostPort } from "./host-port";
import { peakRatePerS, type LoadProfile } from "./load-profile";
import type { LoadSpec } from "./load-spec";

/** Hard limits of a controller, said when it starts. */
export interface LoadLimits {
  /** host:port or dns:///NAME:port that may be loaded; null: any. */
  readonly targets: readonly string[] | null;
  /** Highest offered rate, requests per second over all workers; Infinity: none. */
  readonly maxRatePerS: number;
  /** Largest in-flight cap of a measurement; Infinity: none. */
  readonly maxInFlight: number;
}

export const noLimits: LoadLimits = { targets: null, maxRatePerS: Infinity, maxInFlight: Infinity };

/** Addresses (IPv4 or IPv6) of a host name. */
export type Resolver = (host: string) => Promise<readonly string[]>;

const systemResolver: Resolver = async (host) =>
  (await lookup(host, { all: true, order: "ipv4first" })).map(({ address }) => address);

const dnsPrefix = /^dns:\/\/\//;

/** host:port of a target, without the mark that asks for every address of the name. */
export function plainAddress(target: string): string {
  return target.replace(dnsPrefix, "");
}

/** A pod's address appears in DNS some time after the pod is ready: so long an address may be missing there, milliseconds. */
const DNS_DELAY_MS = 30_000;
const DNS_RETRY_MS = 2000;

/**
 * The spec with every dns:///NAME:port replaced by the addresses that the name has now, sorted; a replica that came or went since the last
 * measurement is seen.
 * @throws LoadSpecError for a target that is not allowed or a name without addresses
 */
export async function resolveTargets(
  spec: LoadSpec,
  limits: LoadLimits,
  resolver: Resolver = systemResolver,
  dnsDelayMs = DNS_DELAY_MS,
): Promise<LoadSpec> {
  const problems: string[] = [];
  const resolve = async (target: string): Promise<readonly string[]> => {
    if (!dnsPrefix.test(target)) return [target];
    try {
      const { host, port } = splitHostPort(plainAddress(target));
      const addresses = await resolver(host);
      if (addresses.length === 0) throw new Error("it has no address");
      return addresses
        .map((address) => (address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`))
        .sort();
    } catch (error) {
      problems.push(`addresses: ${target} cannot be resolved: ${(error as Error).message}`);
      return [];
    }
  };
  const resolved = await Promise.all(spec.addresses.map(resolve));
  if (limits.targets !== null) {
    const allowed = new Set(limits.targets);
    const names = limits.targets.filter((target) => dnsPrefix.test(target));
    const deadlineMs = performance.now() + dnsDelayMs;
    while (names.length > 0 && !spec.addresses.every((address) => allowed.has(address))) {
      for (const addresses of await Promise.all(names.map(resolve)))
        for (const address of addresses) allowed.add(address);
      if (performance.now() + DNS_RETRY_MS > deadlineMs) break;
      if (!spec.addresses.every((address) => allowed.has(address)))
        await new Promise((wait) => setTimeout(wait, DNS_RETRY_MS));
    }
    for (const address of spec.addresses)
      if (!allowed.has(address))
        problems.push(
          `addresses: ${address} is none of this controller's targets (${limits.targets.join(", ") || "none"}): ` +
            `start the controller with --target ${address} to allow it`,
        );
  }
  if (problems.length > 0) throw new LoadSpecError([...new Set(problems)]);
  return { ...spec, addresses: [...new Set(resolved.flat())] };
}

/** The shape as the limits let it run: a closed loop that would take whatever the server gives is held to the highest rate. */
export function limitedShape(shape: LoadProfile, { maxRatePerS }: LoadLimits): LoadProfile {
  if (shape.kind !== "users" || maxRatePerS === Infinity || peakRatePerS(shape) > 0) return shape;
  return { ...shape, maxRatePerS };
}

/** @throws LoadSpecError for a load beyond the limits */
export function checkLimits(
  { shape, maxInFlight }: { readonly shape: LoadProfile; readonly maxInFlight: number },
  limits: LoadLimits,
): void {
  const problems: string[] = [];
  const offered = peakRatePerS(shape);
  if (offered > limits.maxRatePerS)
    problems.push(
      `the load would offer ${Number(offered.toFixed(1))} requests/s; this controller's limit is ${limits.maxRatePerS} (--max-rate)`,
    );
  if (maxInFlight > limits.maxInFlight)
    problems.push(
      `maxInFlight of ${maxInFlight} is over this controller's limit of ${limits.maxInFlight} (--max-in-flight)`,
    );
  if (problems.length > 0) throw new LoadSpecError(problems);
}
