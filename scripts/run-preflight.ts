/** The checks before a sweep, for whatever target was chosen. */
import { KserveClient } from "../kserve/client";
import type { Variant } from "../model-repo/variant";
import { defaultWorkers, type FoundServers } from "../targets/address";
import { placeCheck } from "../targets/same-machine";
import { checkImages, checkWorkers } from "../tuning/preflight/client-checks";
import type { Check } from "../tuning/preflight/check";
import { checkControl, checkMetrics, checkModels, checkServer } from "../tuning/preflight/server-checks";

export interface PreflightOptions {
  /** Null: the local server, which needs nothing. */
  readonly servers: FoundServers | null;
  readonly variants: readonly Variant[];
  readonly imageFolder: string;
  readonly workers: number | null;
  readonly cores: number;
  /** Load is made on this machine. */
  readonly isHere: boolean;
}

/** Checks of the servers; nothing on them is changed. */
export async function checkServers(servers: FoundServers, variants: readonly Variant[]): Promise<Check[]> {
  const checks: Check[] = [];
  for (const address of servers.addresses) {
    const client = new KserveClient(address);
    const several = servers.addresses.length > 1;
    const add = (check: Check): void =>
      void checks.push(several ? { ...check, name: `${check.name} (${address})` } : check);
    try {
      add(await checkServer(client, variants));
      add(await checkControl(client));
      for (const check of await checkModels(client, variants)) add(check);
    } finally {
      client.close();
    }
  }
  const { samples, urls, missing } = servers.metrics;
  return [...checks, ...checkMetrics(samples, urls, missing)];
}

/** All checks. */
export async function runPreflight(options: PreflightOptions): Promise<Check[]> {
  const { servers, variants, imageFolder, workers, cores, isHere } = options;
  const checks = servers === null ? [] : await checkServers(servers, variants);
  if (!isHere) return checks;
  return [
    ...checks,
    ...(servers === null ? [] : [placeCheck(servers.addresses)]),
    await checkImages(imageFolder, variants),
    await checkWorkers(workers ?? defaultWorkers(cores)),
  ];
}
