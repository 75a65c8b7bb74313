/** What nodes, inferences and a whole stack cost. Pure arithmetic over a price table; US dollars throughout. */
import { PricesError, type Prices, type RegionFactors } from "./prices";

/** Google bills a month as 730 hours (https://cloud.google.com/compute/vm-instance-pricing). */
export const hoursPerMonth = 730;
export const hoursPerYear = 8760;

/** A kind of node (or VM). */
export interface NodeShape {
  /** E.g. `n1-standard-8`. */
  readonly machineType: string;
  readonly accelerator?: { readonly type: string; readonly count: number };
  readonly disk?: { readonly type: string; readonly sizeGib: number };
  /** Machine and accelerator at the spot price. Default false. */
  readonly spot?: boolean;
  /** Default: the table's default region. */
  readonly region?: string;
}

type Table = "machines" | "accelerators" | "disks" | "storage";

function entry<T extends Table>(prices: Prices, table: T, name: string): Prices[T][string] {
  const entries: Prices[T] = prices[table];
  const found = Object.hasOwn(entries, name) ? entries[name] : undefined;
  if (found === undefined)
    throw new PricesError(
      `the price table has no ${table} "${name}" (known: ${Object.keys(entries).join(", ")}); add it as an override`,
    );
  return found as Prices[T][string];
}

function regionFactors(prices: Prices, region: string): RegionFactors {
  const factors = Object.hasOwn(prices.regions, region) ? prices.regions[region] : undefined;
  if (factors === undefined)
    throw new PricesError(
      `the price table has no region "${region}" (known: ${Object.keys(prices.regions).join(", ")}); add it as an override`,
    );
  return factors;
}

function hourly(prices: Prices, table: "machines" | "accelerators", name: string, spot: boolean): number {
  const { usdPerH, spotUsdPerH } = entry(prices, table, name);
  if (!spot) return usdPerH;
  if (spotUsdPerH === null)
    throw new PricesError(
      `the price table has no spot price for ${name}; override ${table}.${name}.spotUsdPerH`,
    );
  return spotUsdPerH;
}

/**
 * Price of one running node an hour: machine, accelerators and disk.
 * @throws PricesError for a machine, accelerator, disk or region that the table does not have
 */
export function nodeUsdPerH(prices: Prices, node: NodeShape): number {
  const { accelerator, disk, spot = false } = node;
  const factors = regionFactors(prices, node.region ?? prices.defaultRegion);
  const machineUsd = hourly(prices, "machines", node.machineType, spot) * factors.machines;
  const acceleratorUsd =
    accelerator === undefined
      ? 0
      : hourly(prices, "accelerators", accelerator.type, spot) * accelerator.count * factors.accelerators;
  const diskUsd =
    disk === undefined
      ? 0
      : (entry(prices, "disks", disk.type).usdPerGibMonth * disk.sizeGib * factors.disks) / hoursPerMonth;
  return machineUsd + acceleratorUsd + diskUsd;
}

function requirePositive(name: string, value: number): void {
  if (!(value > 0) || !Number.isFinite(value))
    throw new RangeError(`${name} is ${value}; it must be above 0 and finite`);
}

function requireNonNegative(name: string, value: number): void {
  if (!(value >= 0) || !Number.isFinite(value))
    throw new RangeError(`${name} is ${value}; it must be 0 or more and finite`);
}

/**
 * Cost of a million inferences on something that costs `usdPerH` and does `ratePerS` all the time:
 * usdPerH / (3600 ratePerS) x 1e6. At a lower load each inference costs more in proportion.
 * @throws RangeError
 */
export function usdPerMillionInferences(usdPerH: number, ratePerS: number): number {
  requireNonNegative("usdPerH", usdPerH);
  requirePositive("ratePerS", ratePerS);
  return (usdPerH / (3600 * ratePerS)) * 1e6;
}

/** Quotients such as 0.9 / 0.3 come out a hair above a whole number; that hair must not cost a replica. */
const roundingSlack = 1e-9;

/**
 * Replicas that carry a load at their SLO rate, and spare ones so that as many may fail: ceil(load / rate) + spare.
 * @param spare default 1 ("N+1")
 * @throws RangeError
 */
export function replicasForLoad(loadPerS: number, ratePerReplicaPerS: number, spare = 1): number {
  requireNonNegative("loadPerS", loadPerS);
  requirePositive("ratePerReplicaPerS", ratePerReplicaPerS);
  if (!Number.isInteger(spare) || spare < 0)
    throw new RangeError(`spare is ${spare}; it must be a whole number from 0`);
  const quotient = loadPerS / ratePerReplicaPerS;
  return Math.max(0, Math.ceil(quotient - roundingSlack * Math.max(1, quotient))) + spare;
}

/** What serving a constant load takes. */
export interface LoadCost {
  readonly replicas: number;
  readonly usdPerH: number;
  readonly usdPerYear: number;
  /** With the spare replicas and the idle share of each included; Infinity without load. */
  readonly usdPerMillionInferences: number;
}

/**
 * Cost of serving a constant load for a year on replicas of one node each.
 * @param nodeUsd price of a node, US dollars an hour
 * @param ratePerReplicaPerS rate that one replica holds within the SLO
 * @throws RangeError
 */
export function costOfLoad(
  nodeUsd: number,
  loadPerS: number,
  ratePerReplicaPerS: number,
  spare = 1,
): LoadCost {
  requireNonNegative("nodeUsd", nodeUsd);
  const replicas = replicasForLoad(loadPerS, ratePerReplicaPerS, spare);
  const usdPerH = replicas * nodeUsd;
  return {
    replicas,
    usdPerH,
    usdPerYear: usdPerH * hoursPerYear,
    usdPerMillionInferences: loadPerS === 0 ? Infinity : usdPerMillionInferences(usdPerH, loadPerS),
  };
}

/** What a stack consists of while it runs. */
export interface StackSize {
  readonly pools: readonly { readonly name: string; readonly node: NodeShape; readonly nodes: number }[];
  /** GKE clusters. Default 1. */
  readonly clusters?: number;
  /** Model files in the bucket, GiB. Default 0. */
  readonly bucketGib?: number;
  /** Cloud NAT of the private nodes; left out when there is none. */
  readonly nat?: { readonly addresses: number; readonly gibPerH: number };
  /** Default: the table's default region. Applies to the bucket, and to nodes that name no region. */
  readonly region?: string;
}

export interface CostLine {
  readonly what: string;
  readonly usdPerH: number;
}

/**
 * Running cost of a stack by line; the sum is what an hour costs.
 * @throws PricesError, RangeError
 */
export function stackCost(prices: Prices, size: StackSize): CostLine[] {
  const region = size.region ?? prices.defaultRegion;
  const { clusters = 1, bucketGib = 0, nat } = size;
  for (const { name, nodes } of size.pools) requireNonNegative(`nodes of pool ${name}`, nodes);
  requireNonNegative("bucketGib", bucketGib);
  const vms = size.pools.reduce((sum, { nodes }) => sum + nodes, 0);
  const storageUsd =
    entry(prices, "storage", "standard").usdPerGibMonth * regionFactors(prices, region).storage;
  return [
    ...size.pools.map(({ name, node, nodes }) => ({
      what: `pool ${name}: ${nodes} x ${node.machineType}`,
      usdPerH: nodes * nodeUsdPerH(prices, { region, ...node }),
    })),
    { what: "GKE cluster fee", usdPerH: clusters * prices.cluster.usdPerH },
    { what: `bucket: ${bucketGib} GiB`, usdPerH: (bucketGib * storageUsd) / hoursPerMonth },
    ...(nat === undefined
      ? []
      : [
          {
            what: "Cloud NAT",
            usdPerH:
              Math.min(vms * prices.nat.usdPerVmH, prices.nat.mostUsdPerH) +
              nat.addresses * prices.nat.usdPerAddressH +
              nat.gibPerH * prices.nat.usdPerGib,
          },
        ]),
  ];
}
