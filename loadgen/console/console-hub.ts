/** What happens, for every console that watches: keeps the history, and tells it over server-sent events. */
import type { ServerResponse } from "node:http";
import type { Controller, WorkerInfo } from "../controller";
import type { HistoryStore, RunSummary } from "../history/history-store";
import {
  addChartSecond,
  chartSeconds,
  MOST_CHART_SECONDS,
  type LoadSecond,
  type RecordedSecond,
} from "../history/load-second";
import type { RecorderListener } from "../history/run-recorder";
import type { LoadChange, LoadResult, LoadSpec } from "../load-spec";
import type { Heartbeat } from "../protocol";
import { shownRun, type ShownRun } from "./shown-run";

/** A console that does not read is let go when this much waits for it, bytes; it comes back and gets a new snapshot. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const WORKERS_EVERY_MS = 1000;

/** A worker as the console's table shows it. */
interface ShownWorker extends Omit<Heartbeat, "runId"> {
  readonly name: string;
  readonly cores: number;
  /** `sending` while it takes part in a measurement. */
  readonly state: "idle" | "sending";
}

/** What a console gets when it comes: everything it needs to look as if it had always been there (locust#2540). */
export interface Snapshot {
  readonly workers: readonly ShownWorker[];
  readonly runs: readonly ShownRun[];
  /** Seconds of the running measurement, else of the last one; of long ones not all. */
  readonly seconds: readonly LoadSecond[];
  /** So many seconds the page's charts keep, too, as more come. */
  readonly mostChartSeconds: number;
}

export class ConsoleHub implements RecorderListener {
  private readonly consoles = new Set<ServerResponse>();
  private readonly timer: NodeJS.Timeout;
  /** Of measurements that a console has asked for. */
  private readonly beginnings = new Map<string, () => void>();
  /** Seconds of the newest measurement. */
  private seconds: LoadSecond[];

  constructor(
    private readonly store: HistoryStore,
    private readonly controller: () => Controller,
  ) {
    const last = store.list().at(-1);
    this.seconds = last === undefined ? [] : chartSeconds(store.seconds(last.id));
    this.timer = setInterval(() => {
      if (this.consoles.size > 0) this.tell("workers", this.workers());
    }, WORKERS_EVERY_MS);
    this.timer.unref();
  }

  /** Sends the snapshot, then what happens, until the console goes. */
  add(response: ServerResponse): void {
    this.consoles.add(response);
    response.on("close", () => this.consoles.delete(response));
    response.write(eventText("snapshot", this.snapshot()));
  }

  /**
   * Starts a measurement; resolves when it has begun to prepare, and goes on by itself.
   * @throws what Controller.run throws before that: a bad spec, no workers, another measurement
   */
  async begin(spec: LoadSpec): Promise<void> {
    const running = this.controller().run(spec);
    const begun = new Promise<void>((resolve) => this.beginnings.set(spec.id, resolve));
    running
      .catch((error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        if (this.store.get(spec.id) !== undefined) this.tellRun(this.store.ended(spec.id, undefined, reason));
      })
      .finally(() => this.beginnings.delete(spec.id));
    await Promise.race([begun, running]);
  }

  snapshot(): Snapshot {
    return {
      workers: this.workers(),
      runs: this.store.list().map(shownRun),
      seconds: this.seconds,
      mostChartSeconds: MOST_CHART_SECONDS,
    };
  }

  started(spec: LoadSpec): void {
    this.seconds = [];
    this.tellRun(this.store.started(spec));
    this.beginnings.get(spec.id)?.();
  }

  second(spec: LoadSpec, recorded: RecordedSecond): void {
    this.store.second(spec.id, recorded);
    addChartSecond(this.seconds, recorded.second);
    this.tell("second", recorded.second);
  }

  changed(spec: LoadSpec, change: LoadChange): void {
    this.tellRun(this.store.changed(spec.id, change));
  }

  ended(spec: LoadSpec, result: LoadResult | undefined): void {
    this.tellRun(this.store.ended(spec.id, result, "it was aborted, or a worker could not run it"));
  }

  close(): void {
    clearInterval(this.timer);
    for (const response of this.consoles) response.end();
  }

  private tellRun(run: RunSummary | undefined): void {
    if (run !== undefined) this.tell("run", shownRun(run));
  }

  private tell(event: string, data: unknown): void {
    if (this.consoles.size === 0) return;
    // Once for all: a thousand workers are 200 kB of text.
    const text = eventText(event, data);
    for (const response of this.consoles) {
      if (response.writableLength > MAX_WAITING_BYTES) response.destroy();
      else response.write(text);
    }
  }

  private workers(): ShownWorker[] {
    return this.controller().workers().map(shown);
  }
}

function shown({ name, cores, heartbeat }: WorkerInfo): ShownWorker {
  return {
    name,
    cores,
    state: heartbeat !== undefined && heartbeat.runId !== "" ? "sending" : "idle",
    inFlight: heartbeat?.inFlight ?? 0,
    latenessP99Ms: heartbeat?.latenessP99Ms ?? 0,
    loopDelayP99Ms: heartbeat?.loopDelayP99Ms ?? 0,
    cpuShare: heartbeat?.cpuShare ?? 0,
    busyWaitShare: heartbeat?.busyWaitShare ?? 0,
    wireMbPerS: heartbeat?.wireMbPerS ?? 0,
    rssMb: heartbeat?.rssMb ?? 0,
    ratePerS: heartbeat?.ratePerS ?? 0,
  };
}

function eventText(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
