/** examples/gpu/measure.sh with a stand-in for the tune command: what is finished, cut off, failed, or out of time. */
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";

const script = resolve(__dirname, "../../examples/gpu/measure.sh");

let dir: string;
let out: string;

/** A `node` that behaves like the tune command: notes its words, leaves a results folder, and ends as the test says. */
const fakeNode = `#!/bin/sh
echo "$@" >> "$CALLS"
while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
case $out in '') exit 0 ;; esac
mkdir -p "$out"
[ ! -e "$out/sweep.lock" ] || { echo "locked"; exit 2; }
echo one >> "$out/points.jsonl"
touch "$out/sweep.lock"
echo "measuring $out"
end() {
  echo "{\\"endedAt\\": $1}" > "$out/manifest.json"
  echo "{\\"endedEarly\\": $2}" > "$out/result.json"
  rm "$out/sweep.lock"
  exit "$3"
}
trap 'end null "\\"interrupted\\"" 130' TERM
case $ENDS in
  well) end '"now"' null 0 ;;
  early) end null '"the time is over"' 4 ;;
  badly) echo "it broke"; exit 1 ;;
  never) while :; do sleep 0.05; done ;;
esac
`;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "gpu-measure-"));
  out = join(dir, "out");
  mkdirSync(join(dir, "bin"));
  writeFileSync(join(dir, "bin/node"), fakeNode);
  chmodSync(join(dir, "bin/node"), 0o755);
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
});

interface Ended {
  readonly code: number | null;
  readonly text: string;
}

function start(ends: string, words: readonly string[], more: NodeJS.ProcessEnv = {}) {
  const child = spawn("bash", [script, out, ...words], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      PATH: [join(dir, "bin"), process.env["PATH"]].join(delimiter),
      ...{
        BUNDLE: dir,
        CALLS: join(dir, "calls"),
        ENDS: ends,
        GRPC_PORT: "1",
        METRICS_PORT: "2",
        LOAD_CPUS: "",
      },
      ...more,
    },
  });
  onTestFinished(() => {
    try {
      process.kill(-child.pid!, "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (some: string) => (text += some));
  return { child, ended: new Promise<Ended>((done) => child.once("close", (code) => done({ code, text }))) };
}

const measure = (ends: string, ...words: string[]): Promise<Ended> => start(ends, words).ended;

/** Words that the tune command was called with, the version question left out. */
function calls(): string[] {
  const file = join(dir, "calls");
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line.includes("tune.js"))
    : [];
}

describe("the measurements on a GPU machine", () => {
  it("are taken part by part, and finished ones are left out the next time", async () => {
    const first = await measure("well", "path", "grid20");
    expect(first.code, first.text).toBe(0);
    expect(first.text).toMatch(/all parts are finished: path grid20/);
    const [path, strict] = calls();
    expect(path).toMatch(
      /--triton 127\.0\.0\.1:1 --metrics http:\/\/127\.0\.0\.1:2\/metrics .*--variants-file variants-path\.yaml$/,
    );
    expect(strict).toMatch(/--variants-file variants-grid20\.yaml --slo p95=20ms$/);
    expect(path).not.toContain("--resume");
    const second = await measure("well", "path", "grid20", "grid");
    expect(second.text).toMatch(/path: finished before\ngrid20: finished before\n/);
    expect(calls()).toHaveLength(3);
  });

  it("go on where they were cut off, even with the lock of a machine that is gone, and keep the log", async () => {
    mkdirSync(join(out, "grid"), { recursive: true });
    writeFileSync(join(out, "grid/points.jsonl"), "before\n");
    writeFileSync(join(out, "grid/sweep.lock"), '{"pid":1,"host":"gone"}');
    writeFileSync(join(out, "grid.log"), "what was said before\n");
    const { code, text } = await measure("well", "grid");
    expect(code, text).toBe(0);
    expect(calls()[0]).toMatch(/--out \S+grid --resume --variants-file variants-grid\.yaml$/);
    expect(readFileSync(join(out, "grid/points.jsonl"), "utf8")).toBe("before\none\n");
    expect(readFileSync(join(out, "grid.log"), "utf8")).toMatch(/^what was said before\n[^]*measuring/);
  });

  it("that ended early or failed say so by their exit code, after the other parts", async () => {
    const early = await measure("early", "path", "grid");
    expect([early.code, calls().length]).toEqual([4, 2]);
    expect(early.text).toMatch(/there is more to do: the same command goes on/);
    const failed = await measure("badly", "path", "grid");
    expect([failed.code, calls().length]).toEqual([1, 4]);
    expect(failed.text).toMatch(/it broke[^]*path failed with exit code 1; see \S+path\.log/);
  });

  it("keep to their time", async () => {
    const { ended } = start("well", ["path"], { LIMIT_S: "90" });
    expect((await ended).code).toBe(0);
    expect(calls()[0]).toMatch(/--max-minutes (1\.[01]\d|0\.9\d) /);
    const none = await start("well", ["grid"], { LIMIT_S: "25" }).ended;
    expect([none.code, none.text]).toEqual([
      4,
      expect.stringMatching(/grid: no time left\nthere is more to do/),
    ]);
    expect(calls()).toHaveLength(1);
  });

  it("end in order when they are told to: the part writes what it has, and no other one starts", async () => {
    const { child, ended } = start("never", ["path", "grid"]);
    while (!existsSync(join(out, "path/points.jsonl")))
      await new Promise((resolve) => setTimeout(resolve, 20));
    child.kill("SIGTERM");
    const { code, text } = await ended;
    expect(code, text).toBe(4);
    expect(readFileSync(join(out, "path/result.json"), "utf8")).toContain("interrupted");
    expect(existsSync(join(out, "grid"))).toBe(false);
  });

  it("refuse an unknown part, and a folder that another run writes into, before anything is measured", async () => {
    const unknown = await measure("well", "path", "gird");
    expect([unknown.code, unknown.text]).toEqual([
      2,
      expect.stringMatching(/unknown part gird: bare, path, explore/),
    ]);
    expect(existsSync(out)).toBe(false);
    const { ended } = start("never", ["path"]);
    while (!existsSync(join(out, "path/points.jsonl")))
      await new Promise((resolve) => setTimeout(resolve, 20));
    const second = await measure("well", "path");
    expect([second.code, second.text]).toEqual([2, expect.stringMatching(/another one writes into/)]);
    void ended;
  });
});
