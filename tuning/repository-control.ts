/**
 * Server control through Triton's repository API (--model-control-mode=explicit): exactly one variant is loaded, on every replica.
 * The stack's own settings are never patched, so the next `pulumi up` sees no drift.
 */
import { isDeepStrictEqual } from "node:util";
import { KserveClient, KserveError } from "../kserve/client";
import type { ModelConfig, ModelIndex } from "../kserve/messages";
import type { Variant } from "../model-repo/variant";
import type { ServerControl } from "./trial";

export interface RepositoryControlOptions {
  /** gRPC addresses of all replicas. */
  readonly addresses: readonly string[];
  /** How long a variant may take to become ready, milliseconds. Default 10 minutes: TensorRT may build engines. */
  readonly readyTimeoutMs?: number;
  /** Whether what was loaded before is loaded again at the end. Default true. */
  readonly restoreAtEnd?: boolean;
  /**
   * The variant that is to be served at the end, as the repository has it, whatever was found: a sweep that was killed may have left
   * another one. Default: what was served before the first variant.
   */
  readonly home?: Variant;
}

const READY_TIMEOUT_MS = 600_000;
const READY_POLL_MS = 50;

export class RepositoryControl implements ServerControl {
  /** One a replica. */
  readonly clients: readonly KserveClient[];
  /** What every replica served before the first variant: configuration by model name. */
  private before: readonly ReadonlyMap<string, ModelConfig>[] | null = null;
  /** What the replicas' repositories say of a model, by replica and model: only loading it shows that, which may take minutes. */
  private readonly written = new Map<KserveClient, Map<string, ModelConfig>>();

  constructor(private readonly options: RepositoryControlOptions) {
    this.clients = options.addresses.map((address) => new KserveClient(address));
    for (const client of this.clients) this.written.set(client, new Map());
  }

  async serve(variant: Variant, signal?: AbortSignal): Promise<string> {
    this.before ??= await Promise.all(this.clients.map(loadedConfigs));
    const names = await Promise.all(this.clients.map((client) => this.serveOn(client, variant, signal)));
    return names[0]!;
  }

  async batchSizes(modelName: string): Promise<Readonly<Record<number, number>> | null> {
    const sizes: Record<number, number> = {};
    for (const client of this.clients) {
      for (const model of await client.modelStatistics(modelName)) {
        for (const batch of model.batch_stats) {
          sizes[batch.batch_size] = (sizes[batch.batch_size] ?? 0) + (batch.compute_infer?.count ?? 0);
        }
      }
    }
    return sizes;
  }

  async isCold(modelName: string): Promise<boolean> {
    const configs = await Promise.all(this.clients.map((client) => client.modelConfig(modelName)));
    return configs.some(({ model_warmup: warmUps }) => warmUps.length === 0);
  }

  /** A model that is still served as it was is not touched. */
  async restore(): Promise<void> {
    const { before } = this;
    const { home, restoreAtEnd } = this.options;
    if (restoreAtEnd === false) return;
    if (home) {
      await Promise.all(this.clients.map((client) => serveHome(client, home)));
      return;
    }
    if (before === null) return;
    await Promise.all(this.clients.map((client, index) => restoreOn(client, before[index]!)));
  }

  close(): void {
    for (const client of this.clients) client.close();
  }

  /** Loads the model that has the variant's name, or else that of its artefact, and overrides settings that differ. */
  private async serveOn(client: KserveClient, variant: Variant, signal?: AbortSignal): Promise<string> {
    const modelName = modelFor(variant, await client.repositoryIndex(), client.address);
    const loaded = await loadedConfigs(client);
    const inForce = loaded.get(modelName);
    const differences = inForce && configDifferences(inForce, variant);
    if (differences?.length === 0 && loaded.size === 1) return modelName;
    try {
      await unloadAll(client);
    } catch (error) {
      if (!isControlRefused(error)) throw explain(error, variant, client.address);
      // Measuring needs no control when the server serves just that; its other models are idle.
      if (differences?.length === 0) return modelName;
      throw refused(client.address, modelName, differences);
    }
    try {
      await this.load(client, modelName, variant, signal);
      return modelName;
    } catch (error) {
      throw explain(error, variant, client.address);
    }
  }

  private async load(
    client: KserveClient,
    modelName: string,
    variant: Variant,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const written = this.written.get(client)!;
    const known = written.get(modelName);
    if (known !== undefined && configDifferences(known, variant).length > 0) {
      const differences = await this.loadOverride(client, modelName, known, variant, signal);
      if (differences.length === 0) return;
    }
    await client.repositoryLoad(modelName, undefined, { signal });
    await this.waitUntilReady(client, modelName, signal);
    const config = await client.modelConfig(modelName);
    written.set(modelName, config);
    if (configDifferences(config, variant).length === 0) return;
    const differences = await this.loadOverride(client, modelName, config, variant, signal);
    if (differences.length === 0) return;
    throw new Error(
      `${client.address} serves ${variant.name} with other settings than asked for: ${differences.join("; ")}. ` +
        `Upload the variant's config.pbtxt.`,
    );
  }

  /** Loads the model with the variant's settings in place of those of `config`. @returns what is served otherwise all the same */
  private async loadOverride(
    client: KserveClient,
    modelName: string,
    config: ModelConfig,
    variant: Variant,
    signal: AbortSignal | undefined,
  ): Promise<string[]> {
    await client.repositoryLoad(modelName, overrideFor(config, variant), { signal });
    await this.waitUntilReady(client, modelName, signal);
    return configDifferences(await client.modelConfig(modelName), variant);
  }

  private async waitUntilReady(client: KserveClient, name: string, signal?: AbortSignal): Promise<void> {
    const timeoutMs = this.options.readyTimeoutMs ?? READY_TIMEOUT_MS;
    const until = performance.now() + timeoutMs;
    while (!(await client.modelReady(name, undefined, { signal }))) {
      if (performance.now() > until) {
        throw new Error(
          `${client.address}: ${name} was loaded but is not ready after ${Math.round(timeoutMs / 1000)} s`,
        );
      }
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
  }
}

/** Names of the loaded models; the index has a line for every version. */
async function loadedModels(client: KserveClient): Promise<string[]> {
  return [...new Set((await client.repositoryIndex({ readyOnly: true })).map((model) => model.name))];
}

async function loadedConfigs(client: KserveClient): Promise<Map<string, ModelConfig>> {
  const configs = new Map<string, ModelConfig>();
  for (const name of await loadedModels(client)) configs.set(name, await client.modelConfig(name));
  return configs;
}

async function unloadAll(client: KserveClient): Promise<void> {
  for (const name of await loadedModels(client)) await client.repositoryUnload(name);
}

async function serveHome(client: KserveClient, home: Variant): Promise<void> {
  const loaded = await loadedConfigs(client);
  const inForce = loaded.get(home.name);
  if (loaded.size === 1 && inForce && configDifferences(inForce, home).length === 0) return;
  // All of them: Triton would keep a sweep's override of the home model too.
  await unloadAll(client);
  await client.repositoryLoad(home.name);
}

async function restoreOn(client: KserveClient, wanted: ReadonlyMap<string, ModelConfig>): Promise<void> {
  const now = await loadedConfigs(client);
  for (const name of now.keys()) if (!wanted.has(name)) await client.repositoryUnload(name);
  for (const [name, config] of wanted) {
    if (isDeepStrictEqual(now.get(name), config)) continue;
    // Without an unload first Triton would keep a sweep's override instead of the repository's configuration.
    await client.repositoryUnload(name);
    await client.repositoryLoad(name);
    // It may have been served by an override of somebody else's.
    const fromFile = await client.modelConfig(name);
    if (!isDeepStrictEqual(fromFile, config)) await client.repositoryLoad(name, configJson(config));
  }
}

/** JSON as protobuf writes it: an absent sub-message, null in our messages, is left out. */
function configJson(config: object): string {
  return JSON.stringify(config, (_key, value: unknown) => (value === null ? undefined : value));
}

/** Name of the repository's model that can serve the variant: its own, or that of its artefact. Null when there is neither. */
export function modelNameFor(variant: Variant, index: readonly ModelIndex[]): string | null {
  const names = index.map(({ name }) => name);
  return [variant.name, variant.artefact.name].find((name) => names.includes(name)) ?? null;
}

/** @throws Error that names the server and what it has */
function modelFor(variant: Variant, index: readonly ModelIndex[], address: string): string {
  const found = modelNameFor(variant, index);
  if (found !== null) return found;
  const names = [...new Set(index.map(({ name }) => name))];
  throw new Error(
    `${address} has no model for ${variant.name} in its repository (it has: ${names.join(", ") || "none"}): ` +
      `upload a folder ${variant.name}/, or one named after its artefact, ${variant.artefact.name}/`,
  );
}

/**
 * The whole configuration as JSON with the variant's settings: Triton replaces its configuration by an override, it does not merge.
 * The first instance group keeps its kind and place and gets the variant's count; there are no others then, because Triton takes
 * a count of 0 for 1.
 */
export function overrideFor(config: ModelConfig, variant: Variant): string {
  const [first] = config.instance_group;
  return configJson({
    ...config,
    max_batch_size: variant.maxBatchSize,
    dynamic_batching: {
      ...config.dynamic_batching,
      preferred_batch_size: variant.preferredBatchSizes,
      max_queue_delay_microseconds: variant.queueDelayUs,
    },
    instance_group: [{ ...first, count: variant.instanceCount }],
  });
}

/** Settings in which the served configuration differs from the variant, in words; empty when it is the variant. */
export function configDifferences(config: ModelConfig, variant: Variant): string[] {
  const instances = config.instance_group.reduce((sum, group) => sum + group.count, 0);
  const batching = config.dynamic_batching;
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ["max_batch_size", config.max_batch_size, variant.maxBatchSize],
    ["instance count", instances, variant.instanceCount],
    ["dynamic_batching", batching ? "on" : "absent", "on"],
    ["max_queue_delay_microseconds", batching?.max_queue_delay_microseconds ?? 0, variant.queueDelayUs],
    [
      "preferred_batch_size",
      preferredText(batching?.preferred_batch_size ?? [], config.max_batch_size),
      preferredText(variant.preferredBatchSizes, variant.maxBatchSize),
    ],
  ];
  return pairs
    .filter(([, served, wanted]) => served !== wanted)
    .map(([name, served, wanted]) => `${name} ${String(served)} instead of ${String(wanted)}`);
}

/** Triton prefers the largest batch where none is preferred. */
function preferredText(sizes: readonly number[], maxBatchSize: number): string {
  return sizes.length === 0 ? String(maxBatchSize) : sizes.join(",");
}

/** Triton's modes none and poll refuse the repository API. */
function isControlRefused(error: unknown): boolean {
  return error instanceof KserveError && /explicit|not allowed|polling/i.test(error.details);
}

function refused(address: string, modelName: string, differences: readonly string[] | undefined): Error {
  const state = differences
    ? `it serves ${modelName} with ${differences.join("; ")}`
    : `${modelName} is not loaded`;
  return new Error(
    `${address} does not let models be loaded, and ${state}: start Triton with --model-control-mode=explicit, ` +
      `or ask only for the settings that it serves`,
  );
}

function explain(error: unknown, variant: Variant, address: string): Error {
  if (!(error instanceof KserveError)) return error instanceof Error ? error : new Error(String(error));
  return new Error(
    `${address} could not load ${variant.name}: ${error.details}. The reason is in the server's log; ` +
      `check that the repository has ${variant.name}/config.pbtxt and the model's files.`,
  );
}
