/**
 * `points.jsonl`: the sweep's memory. A line a trial, appended and synced to disk before the sweep goes on, so that whatever
 * happens (Ctrl-C, kill, power cut, full disk) no finished trial is lost and none is measured twice.
 *
 * Only the last line can be torn, since every earlier one was synced before the next was begun. A torn last line is dropped with
 * a note; damage anywhere else is an error that names the line.
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { TrialResult, TrialSpec } from "../trial";
import { makeFolder, syncFolder } from "./durable";
import { lockFolder, type FolderLock } from "./lock";
import { errorCode, fsError, oneLine, ResultsError } from "./results-error";
import { namedNonFinite, trialResultSchema, trialSpecSchema } from "./trial-schema";

/** Name of the log in the results folder. */
export const pointLogFileName = "points.jsonl";

/** One line of the log. */
export interface PointRecord {
  readonly schemaVersion: 1;
  /** `trialKey()` of the trial. */
  readonly key: string;
  /** 1 for the first try; more when earlier ones were invalid. */
  readonly attempt: number;
  /** End of the trial, ISO 8601. */
  readonly finishedAt: string;
  /** Wall seconds per model second at which it was measured. */
  readonly timeDilation: number;
  readonly spec: TrialSpec;
  readonly result: TrialResult;
}

const recordSchema = z.looseObject({
  schemaVersion: z.literal(1),
  key: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits"),
  attempt: z.number().int().positive(),
  finishedAt: z.string(),
  timeDilation: z.number().min(1),
  spec: trialSpecSchema,
  result: trialResultSchema,
}) satisfies z.ZodType<PointRecord>;

/** What a log holds. */
export interface PointLogContent {
  readonly records: readonly PointRecord[];
  /** E.g. that a half-written last line was dropped. */
  readonly notes: readonly string[];
}

/** Reads a log without changing it; a missing file is an empty log. @throws ResultsError `corrupt` with the line's number. */
export function readPointLog(path: string): PointLogContent {
  const { records, notes } = parse(readBytes(path), path);
  return { records, notes };
}

/** The log, open for writing by this process alone. */
export class PointLog {
  private readonly byKey = new Map<string, PointRecord>();
  private readonly all: PointRecord[] = [];
  private file: number | null;

  private constructor(
    private readonly path: string,
    file: number,
    private readonly lock: FolderLock,
    /** What the user should know: dropped line, stale lock. */
    readonly notes: readonly string[],
    records: readonly PointRecord[],
  ) {
    this.file = file;
    for (const record of records) this.remember(record);
  }

  /**
   * Opens (or makes) the log of a results folder, locks the folder and repairs a half-written last line.
   * @throws ResultsError `in-use`, `not-writable`, `disk-full` or `corrupt`
   */
  static open(folder: string): PointLog {
    const path = join(folder, pointLogFileName);
    makeFolder(folder);
    const lock = lockFolder(folder);
    let file: number | null = null;
    try {
      const content = parse(readBytes(path), path);
      file = openSync(path, "a");
      repair(file, content);
      syncFolder(folder);
      return new PointLog(path, file, lock, [...lock.notes, ...content.notes], content.records);
    } catch (error) {
      if (file !== null) closeSync(file);
      lock.release();
      throw fsError(error, `open ${path}`);
    }
  }

  /** All trials, invalid ones too, in the order of measurement. */
  get records(): readonly PointRecord[] {
    return this.all;
  }

  /** The finished (valid) trial with this key; null when it has to be measured. */
  find(key: string): PointRecord | null {
    return this.byKey.get(key) ?? null;
  }

  /** Tries so far at this key, invalid ones included. */
  attempts(key: string): number {
    return this.all.filter((record) => record.key === key).length;
  }

  /**
   * Appends a trial; it is on disk when this returns. After a failed write the file is as before, so the log stays readable.
   * @throws ResultsError `disk-full` ...; Error when the log is closed or the key is finished already (a caller's mistake)
   */
  append(record: PointRecord): void {
    if (this.file === null) throw new Error(`${this.path} is closed`);
    if (this.find(record.key) !== null) throw new Error(`trial ${record.key} is in ${this.path} already`);
    const text = JSON.stringify(record, namedNonFinite);
    // A line that could not be read back would make the whole log unreadable: better to fail now.
    recordSchema.parse(JSON.parse(text));
    const line = Buffer.from(text + "\n");
    const sizeBefore = fstatSync(this.file).size;
    try {
      writeAll(this.file, line);
      fsyncSync(this.file);
    } catch (error) {
      this.shrink(this.file, sizeBefore);
      throw fsError(error, `append to ${this.path}`);
    }
    this.remember(record);
  }

  /** Closes the file and unlocks the folder; may be called twice. */
  close(): void {
    if (this.file === null) return;
    closeSync(this.file);
    this.file = null;
    this.lock.release();
  }

  /** Undoes a part of a line. Needs no space, so it works on a full disk too. */
  private shrink(file: number, size: number): void {
    try {
      ftruncateSync(file, size);
    } catch {
      // The torn line stays the last one: nothing may be appended after it. The next open drops it.
      this.close();
    }
  }

  private remember(record: PointRecord): void {
    this.all.push(record);
    if (record.result.load.valid) this.byKey.set(record.key, record);
  }
}

interface Parsed extends PointLogContent {
  /** Length of the part that is kept. */
  readonly goodBytes: number;
  /** The last kept line lacks its line feed. */
  readonly unterminated: boolean;
}

function readBytes(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return Buffer.alloc(0);
    throw fsError(error, `read ${path}`);
  }
}

function parse(bytes: Buffer, path: string): Parsed {
  const records: PointRecord[] = [];
  const notes: string[] = [];
  let start = 0;
  for (let lineNumber = 1; start < bytes.length; lineNumber++) {
    const lineFeed = bytes.indexOf(0x0a, start);
    const end = lineFeed === -1 ? bytes.length : lineFeed;
    const isLast = lineFeed === -1 || lineFeed === bytes.length - 1;
    let value: unknown;
    try {
      value = JSON.parse(bytes.toString("utf8", start, end));
    } catch (error) {
      if (!isLast) throw corruptLine(path, lineNumber, oneLine(error), error);
      const lost = bytes.length - start;
      notes.push(`the half-written last line (${lineNumber}) of ${path} was dropped (${lost} bytes)`);
      return { records, notes, goodBytes: start, unterminated: false };
    }
    const record = recordSchema.safeParse(value);
    if (!record.success) throw corruptLine(path, lineNumber, oneLine(record.error), record.error);
    records.push(record.data);
    if (lineFeed === -1) return { records, notes, goodBytes: bytes.length, unterminated: true };
    start = lineFeed + 1;
  }
  return { records, notes, goodBytes: bytes.length, unterminated: false };
}

function corruptLine(path: string, lineNumber: number, why: string, cause: unknown): ResultsError {
  return new ResultsError(
    "corrupt",
    `line ${lineNumber} of ${path} is damaged: ${why}. Remove that line (its trial is measured again) or use another --out.`,
    { cause },
  );
}

function repair(file: number, content: Parsed): void {
  if (fstatSync(file).size > content.goodBytes) ftruncateSync(file, content.goodBytes);
  if (content.unterminated) writeAll(file, Buffer.from("\n"));
  fsyncSync(file);
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length;) written += writeSync(file, bytes, written);
}
