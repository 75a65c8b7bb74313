/**
 * Prices of what the stack uses: one dated table (price-table.json), checked when it is read, and overridable entry by entry.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
// Not prices.json: Pulumi's Node host would take that for the module ./prices.
import table from "./price-table.json";

const usd = z.number().nonnegative();
/** Name of an entry of `sources`. */
const source = z.string().min(1);

const hourlySchema = z.strictObject({
  /** On demand, US dollars an hour. */
  usdPerH: usd,
  /** Spot, US dollars an hour; null when the table does not know it. */
  spotUsdPerH: usd.nullable(),
  source,
});
const machineSchema = hourlySchema.extend({ vcpus: z.int().positive(), memoryGib: z.number().positive() });
const monthlySchema = z.strictObject({ usdPerGibMonth: usd, source });
/** Price of the region over the table's price, by kind of resource. */
const regionSchema = z.strictObject({
  machines: z.number().positive(),
  accelerators: z.number().positive(),
  disks: z.number().positive(),
  storage: z.number().positive(),
});

const pricesSchema = z
  .strictObject({
    schemaVersion: z.literal(1),
    currency: z.literal("USD"),
    /** Month that the prices were known for, YYYY-MM. */
    asOf: z.string().regex(/^\d{4}-(0[1-9]|1[0-2])$/, "is no month; use YYYY-MM"),
    /** What a reader must know about the table; reports repeat it. */
    note: z.string().min(1),
    /** Public price pages by name. */
    sources: z.record(z.string(), z.url()),
    machines: z.record(z.string(), machineSchema),
    accelerators: z.record(z.string(), hourlySchema),
    disks: z.record(z.string(), monthlySchema),
    storage: z.record(z.string(), monthlySchema),
    /** GKE's management fee of one cluster. */
    cluster: z.strictObject({ usdPerH: usd, source }),
    /** Cloud NAT: an hour a VM up to `mostUsdPerH` a gateway, an hour an external address, and a GiB passed in either direction. */
    nat: z.strictObject({ usdPerVmH: usd, mostUsdPerH: usd, usdPerAddressH: usd, usdPerGib: usd, source }),
    defaultRegion: z.string(),
    regions: z.record(z.string(), regionSchema),
  })
  .superRefine((prices, context) => {
    if (!Object.hasOwn(prices.regions, prices.defaultRegion))
      context.addIssue({
        code: "custom",
        path: ["defaultRegion"],
        message: `"${prices.defaultRegion}" is not among the regions`,
      });
    for (const [path, name] of sourcesOf(prices))
      if (!Object.hasOwn(prices.sources, name))
        context.addIssue({
          code: "custom",
          path,
          message: `"${name}" is not among the sources: ${Object.keys(prices.sources).join(", ")}`,
        });
  });

export type Prices = z.infer<typeof pricesSchema>;
export type RegionFactors = z.infer<typeof regionSchema>;

/** A table or override that cannot be used; a line a problem, with its key. */
export class PricesError extends Error {
  override readonly name = "PricesError";
}

function sourcesOf(value: unknown, path: readonly string[] = []): [string[], string][] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]): [string[], string][] =>
    key === "source" && typeof inner === "string"
      ? [[[...path, key], inner]]
      : sourcesOf(inner, [...path, key]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Objects are merged key by key; anything else replaces. */
function merge(base: unknown, override: unknown): unknown {
  if (!isObject(base) || !isObject(override)) return override;
  const entries = Object.entries(override).map(([key, value]): [string, unknown] => [
    key,
    Object.hasOwn(base, key) ? merge(base[key], value) : value,
  ]);
  return Object.fromEntries([...Object.entries(base), ...entries]);
}

/**
 * The table, with entries replaced or added.
 * @param overrides part of the table, e.g. `{"asOf": "2027-02", "machines": {"n1-standard-8": {"usdPerH": 0.41}}}`; an entry that
 *   the table does not have must be whole
 * @throws PricesError with all problems at once
 */
export function loadPrices(overrides: unknown = {}): Prices {
  if (!isObject(overrides)) throw new PricesError("prices: the override is no object");
  const result = pricesSchema.safeParse(merge(table, overrides));
  if (result.success) return result.data;
  const problems = result.error.issues.map(
    ({ path, message }) => `prices.${path.map(String).join(".")}: ${message}`,
  );
  throw new PricesError(problems.join("\n"));
}

/**
 * The table with the overrides of a JSON file.
 * @throws PricesError that names the file
 */
export function loadPricesFile(file: string): Prices {
  let overrides: unknown;
  try {
    overrides = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new PricesError(`${file} cannot be read as JSON: ${(error as Error).message}`);
  }
  try {
    return loadPrices(overrides);
  } catch (error) {
    throw new PricesError(`${file}: ${(error as Error).message}`);
  }
}
