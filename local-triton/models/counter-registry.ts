import { ModelCounters } from "./statistics";

/** Counters of one model version, for /metrics. */
export interface CountedModel {
  readonly name: string;
  readonly version: string;
  readonly counters: ModelCounters;
  /** Requests that wait for execution now. */
  readonly waiting: number;
}

/** The counters of every model version that was ever loaded: they outlive reloads and unloads. */
export class CounterRegistry {
  private readonly models = new Map<string, Omit<CountedModel, "waiting">>();

  of(name: string, version: string): ModelCounters {
    const key = `${name}/${version}`;
    let model = this.models.get(key);
    if (model === undefined) {
      model = { name, version, counters: new ModelCounters() };
      this.models.set(key, model);
    }
    return model.counters;
  }

  list(waitingOf: (name: string) => number): CountedModel[] {
    return [...this.models.values()].map((model) => ({ ...model, waiting: waitingOf(model.name) }));
  }
}
