/** The tune command on the embedded server, killed in mid-sweep: its server and workers go with it, and no trial is lost or doubled. */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { pointLogFileName, readPointLog } from "../../../tuning/results/point-log";
import { readResult } from "../../../tuning/results/results-folder";
import { until } from "../../engine/cluster/program";

const checkout = resolve(__dirname, "..", "..", "..");
/** When it is killed: so many trials after its start, and so many milliseconds later. */
const moments = [
  { trials: 0, thenMs: 300 },
  { trials: 0, thenMs: 3000 },
  { trials: 1, thenMs: 500 },
  { trials: 1, thenMs: 20 },
  { trials: 1, thenMs: 2500 },
] as const;
const variant = "tftrt_fp32";
/** In every process that the command starts. */
const mark = `TUNE_TEST_MARK=${randomUUID()}`;

function tune(out: string): { child: ChildProcess; ended: Promise<number | null>; text: () => string } {
  const words = ["--variants", variant, "--time-dilation", "4", "--out", out, "--resume"];
  const child = spawn(process.execPath, ["--import", "tsx", "scripts/tune.ts", ...words], {
    cwd: checkout,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, [mark.split("=")[0]!]: mark.split("=")[1]! },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (part: string) => (text += part));
  const ended = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, ended, text: () => text };
}

/** Processes that a command of this test has started and that still run. */
function leftovers(): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    try {
      if (!readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark)) return [];
      return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")];
    } catch {
      return [];
    }
  });
}

function nothingLeft(): Promise<unknown> {
  return until("no process is left", async () => leftovers().length === 0, 30_000);
}

/** Trials that were run, not taken from the log. */
function measured(text: string): number {
  return text.split("\n").filter((line) => / {2}missed /.test(line) && !line.includes("from the point log"))
    .length;
}

function keysIn(out: string): string[] {
  const file = join(out, pointLogFileName);
  return existsSync(file)
    ? readPointLog(file)
        .records.filter(({ result }) => result.load.valid)
        .map(({ key }) => key)
    : [];
}

it("goes on after kills in mid-sweep, and leaves no process behind", async () => {
  const root = mkdtempSync(join(tmpdir(), "tune-killed-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const out = join(root, "run");
  let known: string[] = [];
  let kills = 0;
  for (const { trials, thenMs } of moments) {
    const { child, ended, text } = tune(out);
    const hasCome = (): boolean => /results: /.test(text()) && measured(text()) >= trials;
    await until("the moment has come", async () => hasCome() || child.exitCode !== null, 120_000, 10);
    await new Promise((done) => setTimeout(done, thenMs));
    if (child.exitCode === null) kills++;
    child.kill("SIGKILL");
    await ended;
    await nothingLeft();
    const now = keysIn(out);
    expect(now.slice(0, known.length)).toEqual(known);
    known = now;
  }
  // The last moments may lie behind the end of a sweep whose trials were nearly all known.
  expect(kills).toBeGreaterThanOrEqual(4);
  const last = tune(out);
  expect(await last.ended, last.text()).toBe(0);
  await nothingLeft();
  const keys = keysIn(out);
  expect(keys.slice(0, known.length)).toEqual(known);
  expect(new Set(keys).size).toBe(keys.length);
  const result = readResult(out);
  expect(result).toMatchObject({ endedEarly: null, recommendation: { variant } });
  expect(result.variants[0]!.trials.filter(({ valid }) => valid)).toHaveLength(keys.length);
});
