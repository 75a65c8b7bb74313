/**
 * Measurements on disk: a folder each, with the spec, a line a second, and the end. Written as it happens, so that a controller that dies
 * loses a second at most; a measurement without an end was lost with its controller.
 */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { LoadChange, LoadResult, LoadSpec } from "../load-spec";
import type { RecordedSecond } from "./load-second";

/** Measurements that are kept; older ones are removed. */
const KEPT_RUNS = 200;

/** A spec as it is shown: without the known answers, which are long, and without certificates. */
export type ShownSpec = Omit<LoadSpec, "knownAnswers" | "tls">;

export interface RunSummary {
  readonly id: string;
  readonly startedUnixMs: number;
  /** running; finished (valid or not, see the result); failed: could not be run; lost: the controller ended during it. */
  readonly state: "running" | "finished" | "failed" | "lost";
  readonly spec: ShownSpec;
  readonly changes: readonly LoadChange[];
  /** Null while it runs, and when it failed or was lost. */
  readonly result: LoadResult | null;
  /** Why it failed or was lost. */
  readonly error: string | null;
}

interface Start {
  readonly startedUnixMs: number;
  /** Ascends over all measurements: two may start in one millisecond, and clocks are set back. Absent in older folders. */
  readonly order?: number;
  readonly spec: ShownSpec;
}

type End = Pick<RunSummary, "state" | "changes" | "result" | "error">;

const lostError = "the controller was restarted during the measurement";

export class HistoryStore {
  private readonly runs = new Map<string, RunSummary>();
  private lastOrder = 0;

  /** @param folder is made if need be; measurements that ran when it was last used are lost ones now. @throws Error naming the folder */
  constructor(private readonly folder: string) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const found = readdirSync(folder).flatMap((name) => this.readRun(join(folder, name)) ?? []);
      found.sort((one, other) => one.order - other.order || one.run.startedUnixMs - other.run.startedUnixMs);
      for (const { run } of found) this.runs.set(run.id, run);
      this.lastOrder = found.at(-1)?.order ?? 0;
    } catch (error) {
      throw new Error(`the state folder ${folder} cannot be used: ${(error as Error).message}`);
    }
  }

  /** Oldest first. */
  list(): RunSummary[] {
    return [...this.runs.values()];
  }

  get(id: string): RunSummary | undefined {
    return this.runs.get(id);
  }

  started({ knownAnswers: _knownAnswers, tls: _tls, ...spec }: LoadSpec): RunSummary {
    const startedUnixMs = Date.now();
    const start: Start = { startedUnixMs, order: ++this.lastOrder, spec };
    const folder = this.folderOf(spec.id);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, "start.json"), JSON.stringify(start));
    this.runs.delete(spec.id);
    const run: RunSummary = {
      ...{ id: spec.id, startedUnixMs, spec },
      ...{ state: "running", changes: [], result: null, error: null },
    };
    this.runs.set(spec.id, run);
    for (const { id } of this.list().slice(0, Math.max(0, this.runs.size - KEPT_RUNS))) this.remove(id);
    return run;
  }

  second(id: string, recorded: RecordedSecond): void {
    if (this.runs.has(id))
      appendFileSync(join(this.folderOf(id), "seconds.jsonl"), `${JSON.stringify(recorded)}\n`);
  }

  changed(id: string, change: LoadChange): RunSummary | undefined {
    const run = this.runs.get(id);
    return run && this.update({ ...run, changes: [...run.changes, change] });
  }

  /** @param result undefined: it could not be run; `error` says why */
  ended(id: string, result: LoadResult | undefined, error: string | null): RunSummary | undefined {
    const run = this.runs.get(id);
    if (run === undefined) return undefined;
    const end: End = {
      state: result === undefined ? "failed" : "finished",
      changes: run.changes,
      result: result ?? null,
      error: result === undefined ? error : null,
    };
    this.writeEnd(this.folderOf(id), end);
    return this.update({ ...run, ...end });
  }

  /** The seconds of a measurement, from disk. */
  seconds(id: string): RecordedSecond[] {
    let text: string;
    try {
      text = readFileSync(join(this.folderOf(id), "seconds.jsonl"), "utf8");
    } catch {
      return []; // it never had one
    }
    // What stands behind the last line break was being written when the controller died.
    const lines = text.split("\n").slice(0, -1);
    return lines.map((line) => JSON.parse(line) as RecordedSecond);
  }

  private readRun(folder: string): { readonly run: RunSummary; readonly order: number } | undefined {
    const read = <T>(name: string): T | undefined => {
      try {
        return JSON.parse(readFileSync(join(folder, name), "utf8")) as T;
      } catch {
        return undefined;
      }
    };
    const start = read<Start>("start.json");
    if (start === undefined) return undefined; // a stranger's folder, or one whose first file was cut off
    let end = read<End>("end.json");
    if (end === undefined) {
      end = { state: "lost", changes: [], result: null, error: lostError };
      this.writeEnd(folder, end);
    }
    const { startedUnixMs, order = 0, spec } = start;
    return { run: { id: spec.id, startedUnixMs, spec, ...end }, order };
  }

  /** Whole or not at all. */
  private writeEnd(folder: string, end: End): void {
    writeFileSync(join(folder, "end.json.new"), JSON.stringify(end));
    renameSync(join(folder, "end.json.new"), join(folder, "end.json"));
  }

  private update(run: RunSummary): RunSummary {
    this.runs.set(run.id, run);
    return run;
  }

  private remove(id: string): void {
    if (this.runs.get(id)?.state === "running") return;
    rmSync(this.folderOf(id), { recursive: true, force: true });
    this.runs.delete(id);
  }

  /** Ids are anybody's text; folders have names of ours. */
  private folderOf(id: string): string {
    return join(this.folder, createHash("sha256").update(id).digest("hex").slice(0, 32));
  }
}
