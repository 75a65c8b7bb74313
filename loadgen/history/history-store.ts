/**
 * Measurements on disk: a folder each, with the spec, a line a second, and the end. Written as it happens, so that a controller that dies
 * loses a second at most; a measurement without an end was lost with its controller. A disk that takes nothing more costs the history of
 * what runs, never the measurement.
 */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Histogram } from "../histogram";
import type { LoadChange, LoadResult, LoadSpec } from "../load-spec";
import type { RecordedSecond } from "./load-second";

/** Measurements that are kept; older ones are removed. */
const KEPT_RUNS = 200;
/** Bytes of specs and seconds that are kept, of all measurements: half of the stack's temporary volume, which ends a pod that fills it. */
const KEPT_BYTES = 512e6;
/** Bytes of one measurement, which is read as a whole: seconds that come later have no histogram, which is most of a second. */
const RUN_BYTES = 96e6;

export interface HistoryLimits {
  readonly keptBytes: number;
  readonly runBytes: number;
}

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

const secondsFile = "seconds.jsonl";
const lostError = "the controller was restarted during the measurement";

export class HistoryStore {
  private readonly runs = new Map<string, RunSummary>();
  /** Bytes of their specs and seconds. */
  private readonly bytes = new Map<string, number>();
  private lastOrder = 0;
  /** Those of which a write has failed, and that was said. */
  private readonly unwritten = new Set<string>();

  /** @param folder is made if need be; measurements that ran when it was last used are lost ones now. @throws Error naming the folder */
  constructor(
    private readonly folder: string,
    private readonly warn: (line: string) => void = (line) => process.stderr.write(`${line}\n`),
    private readonly limits: HistoryLimits = { keptBytes: KEPT_BYTES, runBytes: RUN_BYTES },
  ) {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const found = readdirSync(folder).flatMap((name) => this.readRun(join(folder, name)) ?? []);
      found.sort((one, other) => one.order - other.order || one.run.startedUnixMs - other.run.startedUnixMs);
      for (const { run } of found) {
        this.runs.set(run.id, run);
        const sizes = ["start.json", secondsFile].map(
          (file) => statSync(join(this.folderOf(run.id), file), { throwIfNoEntry: false })?.size ?? 0,
        );
        this.bytes.set(run.id, sizes[0]! + sizes[1]!);
      }
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
    const text = JSON.stringify(start);
    this.runs.delete(spec.id);
    this.unwritten.delete(spec.id);
    this.bytes.set(spec.id, text.length);
    this.write(spec.id, () => {
      const folder = this.folderOf(spec.id);
      rmSync(folder, { recursive: true, force: true });
      mkdirSync(folder, { mode: 0o700 });
      writeFileSync(join(folder, "start.json"), text);
    });
    const run: RunSummary = {
      ...{ id: spec.id, startedUnixMs, spec },
      ...{ state: "running", changes: [], result: null, error: null },
    };
    this.runs.set(spec.id, run);
    for (const { id } of this.list().slice(0, Math.max(0, this.runs.size - KEPT_RUNS))) this.remove(id);
    this.makeRoom(spec.id);
    return run;
  }

  second(id: string, recorded: RecordedSecond): void {
    // Behind a line that was cut off no other one can stand.
    if (!this.runs.has(id) || this.unwritten.has(id)) return;
    const before = this.bytes.get(id) ?? 0;
    const kept =
      before < this.limits.runBytes ? recorded : { ...recorded, response: new Histogram().toSparse() };
    const line = `${JSON.stringify(kept)}\n`;
    this.write(id, () => appendFileSync(join(this.folderOf(id), secondsFile), line));
    this.bytes.set(id, before + line.length);
    this.makeRoom(id);
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
    this.write(id, () => this.writeEnd(this.folderOf(id), end));
    return this.update({ ...run, ...end });
  }

  /** The seconds of a measurement, from disk. */
  seconds(id: string): RecordedSecond[] {
    let text: string;
    try {
      text = readFileSync(join(this.folderOf(id), secondsFile), "utf8");
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
    this.write(id, () => rmSync(this.folderOf(id), { recursive: true, force: true }));
    this.runs.delete(id);
    this.bytes.delete(id);
    this.unwritten.delete(id);
  }

  /** What fails is said once a measurement. */
  private write(id: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      if (!this.unwritten.has(id))
        this.warn(`history of ${id} cannot be written, it goes on without: ${(error as Error).message}`);
      this.unwritten.add(id);
    }
  }

  /** Removes the oldest until the rest is small enough; the one that grows stays. */
  private makeRoom(growing: string): void {
    let total = [...this.bytes.values()].reduce((sum, bytes) => sum + bytes, 0);
    for (const old of this.runs.keys()) {
      if (total <= this.limits.keptBytes || old === growing) return;
      total -= this.bytes.get(old) ?? 0;
      this.remove(old);
    }
  }

  /** Ids are anybody's text; folders have names of ours. */
  private folderOf(id: string): string {
    return join(this.folder, createHash("sha256").update(id).digest("hex").slice(0, 32));
  }
}
