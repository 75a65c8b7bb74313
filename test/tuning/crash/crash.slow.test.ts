/**
 * A sweep that is killed, or cannot write, at any moment ends with the same answer as one that was left alone. The process is the real
 * one but for its server, which exists in virtual time.
 */
import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { RandomStream } from "../../../loadgen/random";
import { lockFileName } from "../../../tuning/results/lock";
import { PointLog, pointLogFileName, readPointLog } from "../../../tuning/results/point-log";
import { readResult } from "../../../tuning/results/results-folder";
import type { Accident } from "./accidents";

const checkout = resolve(__dirname, "..", "..", "..");
const KILLS = 100;
/** Some chains of kills and resumptions run side by side. */
const KILLS_OF_CHAIN = 25;

let bin: string;
let program: string;

beforeAll(async () => {
  bin = mkdtempSync(join(tmpdir(), "sweep-process-"));
  program = join(bin, "sweep.cjs");
  // One file starts in a fraction of the time that the loader of the sources needs, and it is started some hundred times.
  await build({
    entryPoints: [join(__dirname, "sweep-process.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    target: "node20",
    external: ["sharp"],
    nodePaths: [join(checkout, "node_modules")],
    logLevel: "error",
  });
  for (const name of ["report.css", "report-page.js"])
    copyFileSync(join(checkout, "tuning", "report", name), join(bin, name));
});
afterAll(() => rmSync(bin, { recursive: true, force: true }));

interface Ended {
  /** Exit code; null when it was killed. */
  readonly code: number | null;
  readonly stdout: string;
}

function run(folder: string, seed: number, accident: Accident | null, killAfterMs?: number): Promise<Ended> {
  return new Promise((done, reject) => {
    const env = {
      ...process.env,
      IMAGES: join(checkout, "model-repo", "images"),
      NODE_PATH: join(checkout, "node_modules"),
    };
    const words = [program, folder, String(seed), JSON.stringify(accident)];
    const child = execFile(process.execPath, words, { env }, (error, stdout, stderr) => {
      clearTimeout(timer);
      const code = error === null ? 0 : child.exitCode;
      if (code !== null && code !== 0 && code !== 2) reject(new Error(`it ended with ${code}: ${stderr}`));
      else done({ code, stdout });
    });
    const timer =
      killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
    onTestFinished(() => void child.kill("SIGKILL"));
  });
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "crash-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return join(path, "run");
}

/** Everything in a result that does not depend on when it was written. */
function answerIn(path: string): unknown {
  const { startedAt: _startedAt, elapsedS: _elapsedS, notes: _notes, ...answer } = readResult(path);
  return answer;
}

/** Every trial in the log with its result, in order; the log must be whole. */
function trialsIn(path: string): unknown[] {
  const { records, notes } = readPointLog(join(path, pointLogFileName));
  expect(notes).toEqual([]);
  expect(new Set(records.map(({ key }) => key)).size).toBe(records.length);
  return records.map(({ key, attempt, result }) => ({ key, attempt, result }));
}

/** What a killed process left half-done is taken for what it is only after some seconds; this makes them pass. */
function someSecondsPass(path: string): void {
  for (const name of [lockFileName, `${lockFileName}.takeover`])
    if (existsSync(join(path, name))) utimesSync(join(path, name), 0, 0);
}

interface Undisturbed {
  readonly answer: unknown;
  readonly trials: readonly unknown[];
  readonly operations: number;
}

async function undisturbed(seed: number): Promise<Undisturbed> {
  const path = folder();
  const { code, stdout } = await run(path, seed, null);
  expect(code).toBe(0);
  return { answer: answerIn(path), trials: trialsIn(path), operations: Number(stdout) };
}

/** Finished trials are never lost: what was in the log before is in it afterwards. */
function grown(path: string, before: readonly string[]): string[] {
  if (!existsSync(join(path, pointLogFileName))) return [];
  const now = readPointLog(join(path, pointLogFileName)).records.map(({ key }) => key);
  expect(now.slice(0, before.length)).toEqual(before);
  return now;
}

/** Kills a sweep again and again until it has ended all the same; another one then, until all kills were used. @returns their number */
async function killedOften(chain: number): Promise<number> {
  const random = new RandomStream(20_261_130, chain);
  const between = (low: number, high: number): number => low + Math.floor(random.uniform() * (high - low));
  const seed = chain;
  const { answer, trials, operations } = await undisturbed(seed);
  let kills = 0;
  while (kills < KILLS_OF_CHAIN) {
    const path = folder();
    let known: string[] = [];
    // A sweep that was resumed has less to do, so a late moment may never come: then it has ended.
    for (let ended = false; !ended && kills < KILLS_OF_CHAIN;) {
      const halfway = random.uniform() < 0.5;
      const accident: Accident = { kind: "killed", at: between(1, Math.ceil(operations / 2)), halfway };
      const byClock = random.uniform() < 0.1;
      const { code } = byClock
        ? await run(path, seed, null, between(100, 600))
        : await run(path, seed, accident);
      ended = code === 0;
      if (!ended) kills++;
      known = grown(path, known);
      someSecondsPass(path);
    }
    expect((await run(path, seed, null)).code).toBe(0);
    expect(answerIn(path)).toEqual(answer);
    expect(trialsIn(path)).toEqual(trials);
  }
  return kills;
}

describe("a sweep in virtual time", () => {
  it(`gives the same answer after ${KILLS} kills at random moments as undisturbed, no trial lost or doubled`, async () => {
    const chains = Array.from({ length: KILLS / KILLS_OF_CHAIN }, (_, chain) => killedOften(chain + 1));
    expect(await Promise.all(chains)).toEqual(chains.map(() => KILLS_OF_CHAIN));
  });

  it.each(["ENOSPC", "EROFS"] as const)(
    "says so when %s strikes at any write, keeps what is finished, and goes on when there is room again",
    async (code) => {
      const random = new RandomStream(code === "ENOSPC" ? 1 : 2);
      const { answer, trials, operations } = await undisturbed(7);
      const path = folder();
      let known: string[] = [];
      for (let strike = 0; strike < 8; strike++) {
        const at = 1 + Math.floor((operations * random.uniform()) / 2);
        const ended = await run(path, 7, { kind: "failing", at, code });
        if (ended.code === 0) break;
        expect(ended.code).toBe(2);
        expect(ended.stdout).toMatch(
          code === "ENOSPC"
            ? /disk, the quota or the file-size limit is exhausted \(ENOSPC\).*run again with --resume/
            : /not permitted \(EROFS\)\. Choose a writable folder with --out DIR/,
        );
        known = grown(path, known);
        someSecondsPass(path);
      }
      expect((await run(path, 7, null)).code).toBe(0);
      expect(answerIn(path)).toEqual(answer);
      expect(trialsIn(path)).toEqual(trials);
    },
  );

  it("a report is whole or absent", async () => {
    const { operations } = await undisturbed(3);
    const path = folder();
    for (let at = operations; at > operations - 12; at -= 3) {
      await run(path, 3, { kind: "killed", at, halfway: true });
      someSecondsPass(path);
      const report = join(path, "report.html");
      if (existsSync(report)) expect(readFileSync(report, "utf8").trimEnd()).toMatch(/<\/html>$/);
    }
    PointLog.open(path).close();
  });
});
