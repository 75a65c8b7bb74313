/** From the command line to an open target and the variants to measure on it. */
import { availableParallelism } from "node:os";
import { KserveClient } from "../kserve/client";
import { findVariants } from "../model-repo/catalogue";
import type { Variant } from "../model-repo/variant";
import { loadPrices, loadPricesFile, PricesError } from "../pricing/prices";
import type { StackOutputs } from "../stack/outputs";
import { defaultWorkers, findServers, openAddressTarget, type FoundServers } from "../targets/address";
import { addressWire } from "../targets/address-wire";
import { catalogueVariantsOn, completeVariants } from "../targets/served-variants";
import { DEFAULT_MAX_RATE_PER_S } from "../targets/limited-load";
import { checkStack } from "../targets/stack/check-stack";
import { Kube } from "../targets/stack/kube";
import { readStackOutputs } from "../targets/stack/read-outputs";
import { stackWireAlone } from "../targets/stack/stack-wire";
import { stackPrice, type StackPrice } from "../targets/stack/stack-price";
import { connectStack, stackVariants } from "../targets/stack/connect-stack";
import { openStackTarget } from "../targets/stack/stack-target";
import { TargetError } from "../targets/target-error";
import { ok, warning, type Check } from "../tuning/preflight/check";
import type { OpenTarget } from "../tuning/target";
import type { Slo } from "../tuning/trial";
import { bucketReader } from "./conversion/gcloud";
import { prepareLocal } from "./open-local";
import { speedsInBucket, speedsInFiles } from "./stand-alone";
import type { AddressOptions, TuneOptions } from "./tune-options";
import { readVariantsFile } from "./variants-option";

/** A target that was looked at: what is asked for exists. */
export interface PreparedTarget {
  readonly variants: readonly Variant[];
  /** Variant that conversions are compared with; a text says why there is none. */
  readonly reference: Variant | string;
  /** Images that the target's conversions kept apart; null: it has none of its own. */
  readonly heldOut: string | null;
  /** Servers that run already; null: the local one, which does not yet. */
  readonly servers: FoundServers | null;
  /**
   * Starts what it needs.
   * @param knownDilations factors of an interrupted sweep that goes on, by variant
   */
  readonly open: (knownDilations: ReadonlyMap<string, number>) => Promise<OpenTarget>;
  /** Checks of the target beside those of the servers. */
  readonly checks: readonly Check[];
  /** The target's own objective, for when none is asked for; null: it has none. */
  readonly slo: Slo | null;
  /** What its machines cost; null: nothing by the hour, or it is not known. */
  readonly price: StackPrice | null;
  /** Lets go of what was opened for looking; may be called twice, and after the open target was closed. */
  readonly close: () => Promise<void>;
}

/** Finds out what can be measured, before anything is written or started. @throws TargetError, InvalidVariantError */
export async function prepareTarget(options: TuneOptions, imageFolder: string): Promise<PreparedTarget> {
  if (options.stack !== null) return enough(options, await prepareStack(options, options.stack));
  if (options.triton !== null)
    return enough(options, await prepareAddresses(options, options.triton, imageFolder));
  return { ...nothingElse, servers: null, ...(await prepareLocal(options, imageFolder)) };
}

/** As many servers as --replicas asks for. */
async function enough({ replicas, stack }: TuneOptions, prepared: PreparedTarget): Promise<PreparedTarget> {
  const wanted = Math.max(1, ...(replicas ?? []));
  const found = prepared.servers?.addresses.length ?? 1;
  if (found >= wanted) return prepared;
  await prepared.close();
  throw new TargetError(
    `--replicas asks for ${wanted} servers, ${found} ${found === 1 ? "is" : "are"} there: ` +
      (stack === null
        ? "name as many with --triton A,B"
        : `pulumi config set replicas ${wanted} --stack ${stack} && pulumi up --stack ${stack}`),
  );
}

const nothingElse = {
  heldOut: null,
  checks: [],
  slo: null,
  price: null,
  close: async () => undefined,
} as const;

async function prepareAddresses(
  options: TuneOptions,
  triton: AddressOptions,
  imageFolder: string,
): Promise<PreparedTarget> {
  const { workers, busyWaitMs } = options;
  const maxRatePerS = options.maxRatePerS ?? DEFAULT_MAX_RATE_PER_S;
  const servers = await findServers(triton.addresses, triton.metrics);
  const client = new KserveClient(triton.addresses[0]!);
  try {
    const variants = await variantsOn(client, options);
    const reference = await referenceOn(client, variants, options);
    const cores = availableParallelism();
    const speeds = await speedsInFiles(options.conversionManifest, variants);
    const open = () => openAddressTarget({ servers, maxRatePerS, workers, busyWaitMs, cores, speeds });
    const checks: Check[] = [];
    if (options.wire) {
      const [address, { artefact }] = [triton.addresses[0]!, variants[0]!];
      const wire = { address, artefact, imageFolder, workers: workers ?? defaultWorkers(cores), maxRatePerS };
      checks.push(ok("wire", (await addressWire(wire)).summary));
    }
    return { ...nothingElse, variants, reference, servers, open, checks };
  } finally {
    client.close();
  }
}

async function prepareStack(options: TuneOptions, stack: string): Promise<PreparedTarget> {
  const outputs = await readStackOutputs(stack);
  if (outputs.environment === "prod" && !options.yesProd)
    throw new TargetError(
      `stack ${stack} serves production, and a sweep loads its servers to their limit and reloads their models: ` +
        `give --yes-prod if that is meant`,
    );
  if (outputs.environment === "prod" && options.after !== null)
    throw new TargetError(
      `--after ${options.after} would leave the users of stack ${stack} without servers: it is not for production`,
    );
  const variants = stackVariants(outputs, stack, options.variants);
  const reference = referenceIn(stackVariants(outputs, stack, null), options.reference, `stack ${stack}`);
  const { price, check } = priceOf(outputs, options.prices);
  const kube = await Kube.connect(outputs.cluster);
  const connected = await connectStack({ stack, outputs, kube });
  const maxRatePerS = options.maxRatePerS ?? connected.outputs.loadGenerator!.peakRatePerS;
  const { percentile, boundMs } = outputs.slo;
  const { artefact } = variants[0]!;
  const { project, modelRepository, triton } = outputs;
  const { bucket } = modelRepository;
  const artefacts = { bucket, read: bucketReader({ project, bucket }), gpuType: triton.gpuType };
  try {
    return {
      ...nothingElse,
      variants,
      reference,
      servers: connected.servers,
      open: async () => {
        const speeds = await speedsInBucket(artefacts, variants);
        return openStackTarget({ connected, maxRatePerS, wireOf: artefact, speeds });
      },
      checks: [
        ...(await checkStack(connected)),
        check,
        ...(options.wire
          ? [ok("wire", (await stackWireAlone(connected, artefact, maxRatePerS)).summary)]
          : []),
      ],
      slo: { quantile: percentile / 100, boundMs },
      price,
      close: () => connected.close(),
    };
  } catch (error) {
    await connected.close();
    throw error;
  }
}

/** A machine without a price does not keep a stack from being measured, but then no limit of its cost can be kept. */
function priceOf(outputs: StackOutputs, file: string | null): { price: StackPrice | null; check: Check } {
  const prices = file === null ? loadPrices() : loadPricesFile(file);
  try {
    const price = stackPrice(outputs, prices);
    const usd = `${price.usdPerHour.toFixed(2)} US dollars an hour, list prices of ${price.asOf}`;
    return { price, check: ok("cost", usd) };
  } catch (error) {
    if (!(error instanceof PricesError)) throw error;
    const fix = "add it to a file of --prices; without it --max-cost is not kept";
    return { price: null, check: warning("cost", error.message, fix) };
  }
}

/** Those of the file, those that were named, or those of the catalogue that the server can serve. */
async function variantsOn(
  client: KserveClient,
  { variants, variantsFile }: TuneOptions,
): Promise<readonly Variant[]> {
  if (variantsFile === null)
    return catalogueVariantsOn(client, variants === null ? null : findVariants(variants));
  return completeVariants(await readVariantsFile(variantsFile), client);
}

/** One of the file, or of the catalogue's variants that the server can serve too. */
async function referenceOn(
  client: KserveClient,
  variants: readonly Variant[],
  { variantsFile, reference }: TuneOptions,
): Promise<Variant | string> {
  if (variantsFile === null)
    return referenceIn(await catalogueVariantsOn(client, null), reference, client.address);
  if (reference !== null) return referenceIn(variants, reference, variantsFile);
  return `which variant of ${variantsFile} the conversions were made of is not known; name it with --reference`;
}

/** @throws TargetError for a name that is none */
function referenceIn(known: readonly Variant[], name: string | null, where: string): Variant | string {
  const found = known.find((variant) => variant.name === (name ?? "original"));
  if (found !== undefined) return found;
  if (name === null)
    return `${where} has no variant "original"; name another one to compare with with --reference`;
  throw new TargetError(
    `--reference ${name}: ${where} has ${known.map((variant) => variant.name).join(", ")}`,
  );
}
