/** From the command line to an open target and the variants to measure on it. */
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { KserveClient } from "../kserve/client";
import { catalogue, findVariants } from "../model-repo/catalogue";
import type { Variant } from "../model-repo/variant";
import { findServers, openAddressTarget, type FoundServers } from "../targets/address";
import { openLocalTarget } from "../targets/local";
import { catalogueVariantsOn, completeVariants } from "../targets/served-variants";
import { TargetError } from "../targets/target-error";
import { parseVariantsFile } from "../targets/variants-file";
import type { OpenTarget } from "../tuning/target";
import type { TuneOptions } from "./tune-options";

/** A target that was looked at: what is asked for exists. */
export interface PreparedTarget {
  readonly variants: readonly Variant[];
  /** Servers that run already; null: the local one, which does not yet. */
  readonly servers: FoundServers | null;
  /**
   * Starts what it needs.
   * @param knownDilations factors of an interrupted sweep that goes on, by variant
   */
  readonly open: (knownDilations: ReadonlyMap<string, number>) => Promise<OpenTarget>;
}

/** Finds out what can be measured, before anything is written or started. @throws TargetError, InvalidVariantError */
export async function prepareTarget(options: TuneOptions, imageFolder: string): Promise<PreparedTarget> {
  const cores = availableParallelism();
  const { triton, workers, maxRatePerS, timeDilation } = options;
  if (triton === null) {
    const variants = options.variants === null ? catalogue : findVariants(options.variants);
    const local = { variants, imageFolder, workers, timeDilation, cores };
    return {
      variants,
      servers: null,
      open: (knownDilations) => openLocalTarget({ ...local, knownDilations }),
    };
  }
  const servers = await findServers(triton.addresses, triton.metrics);
  const client = new KserveClient(triton.addresses[0]!);
  try {
    const variants = await variantsOn(client, options);
    return { variants, servers, open: () => openAddressTarget({ servers, maxRatePerS, workers, cores }) };
  } finally {
    client.close();
  }
}

/** Those of the file, those that were named, or those of the catalogue that the server can serve. */
async function variantsOn(
  client: KserveClient,
  { variants, variantsFile }: TuneOptions,
): Promise<readonly Variant[]> {
  if (variantsFile === null)
    return catalogueVariantsOn(client, variants === null ? null : findVariants(variants));
  let text: string;
  try {
    text = await readFile(variantsFile, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TargetError(`--variants-file ${variantsFile} cannot be read: ${reason}`);
  }
  return completeVariants(parseVariantsFile(text, variantsFile), client);
}
