import { spawn, type ChildProcess } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockFileName } from "../../../tuning/results/lock";
import { PointLog, pointLogFileName, readPointLog } from "../../../tuning/results/point-log";
import { pointLogStore } from "../../../tuning/results/trial-store";
import { record } from "./records";

let folder: string;
let path: string;
const opened: PointLog[] = [];
const children: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "point-log-"));
  path = join(folder, pointLogFileName);
});
afterEach(() => {
  for (const log of opened.splice(0)) log.close();
  for (const child of children.splice(0)) child.kill("SIGKILL");
  chmodSync(folder, 0o755);
  rmSync(folder, { recursive: true });
});

function open(): PointLog {
  const log = PointLog.open(folder);
  opened.push(log);
  return log;
}

function filled(...names: string[]): void {
  const log = PointLog.open(folder);
  for (const name of names) log.append(record(name));
  log.close();
}

/** Starts writer-process.ts; `limitKiB` is a limit on the size of a file that it may write. */
function writer(mode: string, limitKiB?: number): ChildProcess {
  const script = join(__dirname, "writer-process.ts");
  const command = [process.execPath, "--import", "tsx", script, folder, mode]
    .map((word) => `'${word}'`)
    .join(" ");
  // An ignored SIGXFSZ turns the limit into EFBIG after a partial write, just as a full disk does.
  const limit = limitKiB === undefined ? "" : `trap '' XFSZ; ulimit -f ${limitKiB};`;
  const child = spawn("bash", ["-c", `${limit} exec ${command}`], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  return child;
}

function firstOutput(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.stdout?.once("data", (data: Buffer) => resolve(data.toString()));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`ended with ${code} and no output`)));
  });
}

describe("append and find", () => {
  it("gives back exactly what was measured, also after reopening", () => {
    const first = record("first");
    const log = open();
    log.append(first);
    expect(log.find(first.key)).toEqual(first);
    log.close();
    expect(open().find(first.key)).toEqual(first);
    expect(readPointLog(path).records).toEqual([first]);
  });

  it("keeps figures bit for bit, and those that JSON lacks", () => {
    fc.assert(
      fc.property(fc.double(), fc.string(), (figure, text) => {
        rmSync(path, { force: true });
        const log = PointLog.open(folder);
        try {
          const original = record("x");
          const { load } = original.result;
          const odd = {
            ...original,
            result: {
              ...original.result,
              load: { ...load, id: text, response: { ...load.response, maxMs: figure } },
            },
          };
          log.append(odd);
          const back = readPointLog(path).records[0];
          expect(back?.result.load.id).toBe(text);
          expect(back?.result.load.response.maxMs).toBe(figure === 0 ? 0 : figure);
        } finally {
          log.close();
        }
      }),
      { numRuns: 40 },
    );
  });

  it("keeps members that this version does not know", () => {
    filled("first");
    const line = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    writeFileSync(path, JSON.stringify({ ...line, later: { version: 2 } }) + "\n");
    expect(open().records[0]).toHaveProperty("later.version", 2);
  });

  it("does not take an invalid trial for a finished one, but counts its attempts", () => {
    const log = open();
    log.append(record("first", { valid: false }));
    const { key } = record("first");
    expect(log.find(key)).toBeNull();
    expect(log.attempts(key)).toBe(1);
    log.append(record("first", { attempt: 2 }));
    expect(log.find(key)?.attempt).toBe(2);
    expect(log.attempts(key)).toBe(2);
  });

  it("refuses a second finished trial with the same key", () => {
    const log = open();
    log.append(record("first"));
    expect(() => log.append(record("first"))).toThrow("already");
    expect(readPointLog(path).records).toHaveLength(1);
  });

  it("refuses a record that could not be read back, and stays usable", () => {
    const log = open();
    expect(() => log.append({ ...record("first"), timeDilation: 0.5 })).toThrow();
    log.append(record("second"));
    expect(readPointLog(path).records).toHaveLength(1);
  });

  it("refuses to write when closed", () => {
    const log = open();
    log.close();
    log.close();
    expect(() => log.append(record("first"))).toThrow("closed");
  });

  it("serves the sweep as its trial store", async () => {
    const log = open();
    const system = { serverIdentity: "s", replicas: 1, modelHash: null, imagesHash: "i", loadGenerator: {} };
    const store = pointLogStore(
      log,
      () => system,
      () => 1.5,
    );
    const { spec, result } = record("first");
    expect(store.find(spec)).toBeNull();
    await store.append(spec, { ...result, load: { ...result.load, valid: false } });
    expect(store.find(spec)).toBeNull();
    await store.append(spec, result);
    expect(store.find(spec)).toEqual(result);
    expect(store.find({ ...spec, seed: spec.seed + 1 })).toBeNull();
    expect(log.records.map((point) => point.attempt)).toEqual([1, 2]);
  });
});

describe("damage", () => {
  it("drops a half-written last line wherever it was cut, and the next append is clean", () => {
    filled("first", "second");
    const whole = readFileSync(path);
    const secondStart = whole.indexOf("\n") + 1;
    fc.assert(
      fc.property(fc.integer({ min: secondStart + 1, max: whole.length - 2 }), (cut) => {
        writeFileSync(path, whole.subarray(0, cut));
        expect(readPointLog(path).notes[0]).toContain(
          `the half-written last line (2) of ${path} was dropped`,
        );
        const log = PointLog.open(folder);
        try {
          expect(log.records).toEqual([record("first")]);
          expect(log.notes).toHaveLength(1);
          log.append(record("third"));
        } finally {
          log.close();
        }
        expect(readPointLog(path)).toEqual({ notes: [], records: [record("first"), record("third")] });
      }),
      { numRuns: 30 },
    );
  });

  it("keeps a last line that lacks only its line feed", () => {
    filled("first");
    writeFileSync(path, readFileSync(path).subarray(0, -1));
    const log = open();
    expect(log.notes).toEqual([]);
    log.append(record("second"));
    expect(readPointLog(path).records).toEqual([record("first"), record("second")]);
  });

  it("drops a last line of zeros, as a power cut can leave it", () => {
    filled("first");
    appendFileSync(path, Buffer.alloc(4096));
    expect(open().records).toEqual([record("first")]);
    expect(readFileSync(path).includes(0)).toBe(false);
  });

  it("names a damaged line in the middle, and changes nothing", () => {
    filled("first", "second", "third");
    const lines = readFileSync(path, "utf8").split("\n");
    lines[1] = lines[1]?.slice(0, 100) ?? "";
    writeFileSync(path, lines.join("\n"));
    const before = readFileSync(path, "utf8");
    expect(() => open()).toThrow(`line 2 of ${path} is damaged`);
    expect(readFileSync(path, "utf8")).toBe(before);
    expect(readdirSync(folder)).toEqual([pointLogFileName]);
  });

  it("names a line that is JSON but no point, and what is wrong with it", () => {
    filled("first");
    const line = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    writeFileSync(path, JSON.stringify({ ...line, key: "short" }) + "\n");
    expect(() => open()).toThrow(/line 1 of .* is damaged: .*64 hexadecimal digits.* at key/);
  });
});

describe("one writer", () => {
  it("refuses a second writer in the same process", () => {
    open();
    expect(() => open()).toThrow(`in use by process ${process.pid}`);
  });

  it("refuses while another process holds the folder, takes over when it was killed, loses nothing", async () => {
    const child = writer("hold");
    expect(await firstOutput(child)).toContain("ready");
    expect(() => open()).toThrow(`in use by process ${child.pid}`);
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
    const log = open();
    expect(log.notes[0]).toContain(`process ${child.pid}`);
    expect(log.records).toEqual([record("first"), record("second")]);
  });

  it("unlocks on close", () => {
    open().close();
    expect(readdirSync(folder)).toEqual([pointLogFileName]);
    expect(open().notes).toEqual([]);
  });

  const holder = {
    pid: process.pid,
    host: "elsewhere",
    lockedAt: "2026-03-02T09:30:00Z",
    processStart: null,
  };
  it("cannot judge a lock of another host, and says how to go on", () => {
    writeFileSync(join(folder, lockFileName), JSON.stringify(holder));
    expect(() => open()).toThrow(/on host elsewhere .* remove .*sweep\.lock/);
  });

  it("takes over the lock of a process whose pid was given to another", () => {
    open().close();
    const lock = { ...holder, host: hostname(), processStart: "an earlier start" };
    writeFileSync(join(folder, lockFileName), JSON.stringify(lock));
    expect(open().notes[0]).toContain("its lock was removed");
  });

  it("waits for nobody: a lock that is just being written, and an unfinished takeover, are refused", () => {
    writeFileSync(join(folder, lockFileName), "");
    expect(() => open()).toThrow("just locking");
    writeFileSync(
      join(folder, lockFileName),
      JSON.stringify({ ...holder, host: hostname(), pid: 999_999_999 }),
    );
    const takeover = join(folder, `${lockFileName}.takeover`);
    mkdirSync(takeover);
    expect(() => open()).toThrow("just taking over");
    // One that was killed in the middle of it holds nobody up for long.
    utimesSync(takeover, 0, 0);
    expect(open().notes[0]).toContain("its lock was removed");
    expect(readdirSync(folder).sort()).toEqual([pointLogFileName, lockFileName]);
  });
});

describe("folders that cannot be written", () => {
  it("says so for a folder without permission", async () => {
    chmodSync(folder, 0o555);
    const message = await firstOutput(writer("unprivileged"));
    expect(message).toMatch(
      /cannot write .*sweep\.lock: not permitted \(EACCES\)\. Choose a writable folder with --out/,
    );
  });

  it("says so when a file stands in the way", () => {
    writeFileSync(join(folder, "file"), "");
    expect(() => PointLog.open(join(folder, "file", "run"))).toThrow(/cannot make the folder .*--out DIR/);
    expect(() => PointLog.open(join(folder, "file"))).toThrow(/--out DIR/);
  });

  it("keeps the log whole when the space runs out in mid-line", async () => {
    const child = writer("fill", 12);
    const gone = new Promise((resolve) => child.once("exit", resolve));
    const message = await firstOutput(child);
    await gone;
    expect(message).toMatch(
      /cannot append to .*points\.jsonl: .*EFBIG.*free some space and run again with --resume/,
    );
    const content = readPointLog(path);
    expect(content.notes).toEqual([]);
    expect(content.records.length).toBeGreaterThan(1);
    expect(readFileSync(path).length).toBeLessThanOrEqual(12 * 1024);
    const log = open();
    log.append(record("after"));
    expect(readPointLog(path).records).toHaveLength(content.records.length + 1);
  });
});
