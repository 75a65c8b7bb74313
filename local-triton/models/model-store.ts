import { GrpcStatusCode } from "../../kserve/status";
import type { ModelIndex, ModelStatistics } from "../../kserve/messages";
import { type Executor, ModelLoadError } from "../executor";
import { StatusError } from "../grpc/status";
import { checkSupported } from "./config-check";
import { type CountedModel, CounterRegistry } from "./counter-registry";
import { type LoadPlan, planLoad } from "./load-plan";
import { PollError, type RepositoryFolder } from "./repository-folder";
import { ServedModel } from "./served-model";
import { StatisticsBook } from "./statistics";
import { parseVersion } from "./version";

/** `explicit`: models are loaded by the repository API. `none`: all are loaded at the start, and the API refuses. */
export type ModelControlMode = "explicit" | "none";

type State = "READY" | "LOADING" | "UNLOADING" | "UNAVAILABLE";

/** A model that was loaded, or that somebody tried to load. */
interface Entry {
  readonly name: string;
  version: string;
  state: State;
  reason: string;
  served: ServedModel | null;
  /** Of the files at the last load. */
  fingerprint: string;
  /** The last load or unload: they go one after the other. */
  busy: Promise<void>;
}

/** The models of the server: which are loaded, by which configuration, and what clients are told about them. Answers as Triton 2.51. */
export class ModelStore {
  private readonly entries = new Map<string, Entry>();
  private readonly registry = new CounterRegistry();
  private stopping = false;

  constructor(
    private readonly folder: RepositoryFolder,
    private readonly executor: Executor,
    private readonly mode: ModelControlMode,
    private readonly nowUs: () => number,
    /** Takes the reasons that Triton writes to its log only. */
    private readonly log: (line: string) => void,
  ) {}

  /**
   * Loads what the server starts with.
   * @param names `--load-model`, for mode `explicit`; "*" is all
   * @throws Error naming the first model that cannot be loaded
   */
  async loadInitial(names: readonly string[]): Promise<void> {
    if (this.mode === "none" && names.length > 0) {
      throw new Error("--load-model needs --model-control-mode explicit: mode none loads all models.");
    }
    const all = this.mode === "none" || names.includes("*");
    const wanted = all ? this.folder.modelNames() : [...new Set(names)];
    await Promise.all(wanted.map((name) => this.enqueue(name, () => this.loadNow(name, undefined))));
  }

  /**
   * Repository API: loads a model, or loads it anew. Without an override, a loaded model whose files are unchanged stays as it
   * is, even if it was loaded by an override.
   * @throws StatusError
   */
  async load(name: string, overrideJson?: string): Promise<void> {
    this.checkExplicit();
    return this.enqueue(name, () => this.loadNow(name, overrideJson));
  }

  /** Repository API: resolves at once; what the model has taken is still answered. An unknown model is no error. */
  async unload(name: string): Promise<void> {
    this.checkExplicit();
    if (this.entries.has(name)) return this.enqueue(name, async () => this.unloadNow(name));
  }

  /**
   * The model that answers a request.
   * @throws StatusError as Triton: NOT_FOUND for an unknown model or version, INVALID_ARGUMENT for a version that is no number
   */
  find(name: string, version: string): ServedModel {
    const wanted = parseVersion(version);
    const entry = this.entries.get(name);
    if (entry === undefined) throw unknownModel(`'${name}' is not found`);
    if (entry.served === null) throw unknownModel(`'${name}' has no available versions`);
    if (wanted !== null && String(wanted) !== entry.version) {
      throw unknownModel(`'${name}' version ${wanted} is not found`);
    }
    return entry.served;
  }

  /**
   * As `find`, for inference: refuses while the server stops.
   * @param prefix how the message begins: which request it is about
   */
  findForInfer(name: string, version: string, prefix: string): ServedModel {
    const served = this.find(name, version);
    if (this.stopping) {
      throw new StatusError(
        GrpcStatusCode.UNAVAILABLE,
        `${prefix}Server is stopping, scheduler for model has stopped accepting new inference requests`,
      );
    }
    return served;
  }

  /** @throws StatusError INVALID_ARGUMENT for a version that is no number */
  isReady(name: string, version: string): boolean {
    const wanted = parseVersion(version);
    const entry = this.entries.get(name);
    return (
      entry !== undefined && entry.served !== null && (wanted === null || String(wanted) === entry.version)
    );
  }

  /** Whether the server is ready under strict readiness: no model is in a bad state, except by being unloaded. */
  get ready(): boolean {
    if (this.stopping) return false;
    return [...this.entries.values()].every((entry) => entry.state === "READY" || entry.reason === UNLOADED);
  }

  index(readyOnly: boolean): ModelIndex[] {
    const names = new Set([...this.folder.modelNames(), ...this.entries.keys()]);
    const models: ModelIndex[] = [];
    for (const name of [...names].sort()) {
      const entry = this.entries.get(name);
      if (readyOnly && entry?.state !== "READY") continue;
      if (entry === undefined) models.push({ name, version: "", state: "", reason: "" });
      else models.push({ name, version: entry.version, state: entry.state, reason: entry.reason });
    }
    return models;
  }

  /** @param name empty: all models that are ready */
  statistics(name: string, version: string): ModelStatistics[] {
    const wanted = parseVersion(version);
    if (name !== "" && !this.isReady(name, version)) {
      const what = wanted === null || !this.isReady(name, "") ? "model" : "model version";
      throw new StatusError(GrpcStatusCode.INVALID_ARGUMENT, `requested ${what} '${name}' is not available`);
    }
    return [...this.entries.values()]
      .filter((entry) => entry.served !== null && (name === "" || entry.name === name))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((entry) => entry.served!.statistics.toMessage(entry.name, entry.version));
  }

  counters(): CountedModel[] {
    return this.registry.list((name) => this.entries.get(name)?.served?.waiting ?? 0);
  }

  get isStopping(): boolean {
    return this.stopping;
  }

  /** From now on inference is refused. */
  stopAccepting(): void {
    this.stopping = true;
  }

  /** Unloads everything, for the end of the server. */
  unloadAll(): void {
    for (const name of this.entries.keys()) this.unloadNow(name);
  }

  private enqueue(name: string, action: () => Promise<void>): Promise<void> {
    const before = this.entries.get(name)?.busy ?? Promise.resolve();
    const result = before.then(action);
    const entry = this.entries.get(name);
    if (entry !== undefined) entry.busy = result.catch(() => undefined);
    return result;
  }

  private async loadNow(name: string, overrideJson: string | undefined): Promise<void> {
    let plan: LoadPlan;
    try {
      const files = this.folder.read(name);
      const loaded = this.entries.get(name);
      if (loaded?.served && overrideJson === undefined && loaded.fingerprint === files.fingerprint) return;
      plan = planLoad(this.folder, name, files, overrideJson, this.executor.gpuIds);
    } catch (error) {
      if (!(error instanceof PollError)) throw error;
      this.log(`failed to load '${name}': ${error.message}`);
      throw new StatusError(
        GrpcStatusCode.INTERNAL,
        `failed to load '${name}', failed to poll from model repository`,
      );
    }
    await this.loadPlanned(name, plan);
  }

  private async loadPlanned(name: string, { config, files, labels }: LoadPlan): Promise<void> {
    const entry = this.entryOf(name, files.version);
    const previous = entry.served;
    if (previous === null) entry.state = "LOADING";
    const counters = this.registry.of(name, files.version);
    const served = new ServedModel(
      name,
      files.version,
      config,
      labels,
      new StatisticsBook(counters),
      this.nowUs,
    );
    try {
      checkSupported(config, this.executor);
      const { versionFolder } = files;
      const model = { config, previous: previous?.config ?? null, versionFolder };
      served.start(await this.executor.load(model, served));
    } catch (error) {
      if (!(error instanceof ModelLoadError)) throw error;
      // A model that is served already goes on being served.
      if (previous === null) {
        entry.state = "UNAVAILABLE";
        entry.reason = error.message;
      }
      this.log(`failed to load '${name}': ${error.message}`);
      throw new StatusError(
        GrpcStatusCode.INVALID_ARGUMENT,
        `load failed for model '${name}': version ${files.version} is at ${entry.state} state: ${error.message};\n`,
      );
    }
    Object.assign(entry, {
      version: files.version,
      state: "READY",
      reason: "",
      served,
      fingerprint: files.fingerprint,
    });
    void previous?.close();
  }

  private unloadNow(name: string): void {
    const entry = this.entries.get(name);
    const served = entry?.served;
    if (entry === undefined || !served) return;
    entry.served = null;
    entry.state = "UNLOADING";
    void served.close().then(() => {
      if (entry.state !== "UNLOADING") return;
      entry.state = "UNAVAILABLE";
      entry.reason = UNLOADED;
    });
  }

  private entryOf(name: string, version: string): Entry {
    let entry = this.entries.get(name);
    if (entry === undefined) {
      entry = {
        name,
        version,
        state: "LOADING",
        reason: "",
        served: null,
        fingerprint: "",
        busy: Promise.resolve(),
      };
      this.entries.set(name, entry);
    }
    return entry;
  }

  private checkExplicit(): void {
    if (this.mode === "explicit") return;
    throw new StatusError(
      GrpcStatusCode.UNAVAILABLE,
      "explicit model load / unload is not allowed if polling is enabled",
    );
  }
}

/** Reason of a model that was unloaded on request. */
const UNLOADED = "unloaded";

function unknownModel(what: string): StatusError {
  return new StatusError(GrpcStatusCode.NOT_FOUND, `Request for unknown model: ${what}`);
}
