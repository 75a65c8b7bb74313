import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseDecideCommandLine } from "../../scripts/decide-options";
import { buildResult } from "../../tuning/results/build-result";
import { context, outcomes } from "../tuning/fixtures/outcomes";

describe("parseDecideCommandLine", () => {
  const parse = (line: string) => parseDecideCommandLine(line.split(" "));

  it("reads folder, load and node", () => {
    expect(
      parse(
        "results/a --for 5000 --spare 0 --margin 20 --machine n1-standard-4 --spot --region europe-west4",
      ),
    ).toEqual({
      kind: "run",
      options: {
        folder: "results/a",
        loadPerS: 5000,
        spareReplicas: 0,
        margin: 0.2,
        machine: {
          machineType: "n1-standard-4",
          gpuType: "nvidia-tesla-t4",
          region: "europe-west4",
          spot: true,
        },
      },
    });
    expect(parse("--for 1")).toMatchObject({
      options: { folder: null, spareReplicas: 1, margin: 0.1, machine: null },
    });
    expect(parse("--for 1 --spot")).toMatchObject({
      options: { machine: { machineType: "n1-standard-8", gpuType: "nvidia-tesla-t4", region: null } },
    });
  });

  it.each([
    ["results/a", ["--for is missing: give the load to be served, e.g. --for 5000"]],
    ["--for", ["--for needs a value, e.g. --for 5000"]],
    [
      "--for 0 --spare -1",
      [
        "--for 0: give a rate in requests per second, e.g. 5000",
        "--spare -1: give a whole number from 0 to 100",
      ],
    ],
    [
      "--for x --margin 95",
      ["--for x: give a rate in requests per second, e.g. 5000", "--margin 95: give percent from 0 to 90"],
    ],
    ["a b --for 1", [expect.stringContaining("too many arguments")]],
  ])("%s", (line, errors) => {
    expect(parse(line)).toEqual({ kind: "invalid", errors });
  });
});

describe("npm run decide", () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "decide-"));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  const run = (...words: string[]) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const script = join(__dirname, "../../scripts/decide.ts");
      const node = ["--import", require.resolve("tsx"), script, ...words];
      execFile(process.execPath, node, { cwd: root }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
      });
    });

  it("prints the plans and writes recommendation.yaml beside the result", async () => {
    mkdirSync(join(root, "run"));
    writeFileSync(join(root, "run", "result.json"), JSON.stringify(buildResult(outcomes, context)));
    const { code, stdout } = await run("run", "--for", "5000");
    expect(code).toBe(0);
    expect(stdout).toMatch(/Take 4 x tftrt_int8_bs16_count4/);
    expect(readFileSync(join(root, "run", "recommendation.yaml"), "utf8")).toContain(
      "triton-slo-stack:replicas: 4",
    );
  });

  it("takes the price of the machine that was measured, unless another one is named", async () => {
    mkdirSync(join(root, "run"));
    const price = { usdPerReplicaHour: 1, asOf: "2026-11" };
    writeFileSync(
      join(root, "run", "result.json"),
      JSON.stringify(buildResult(outcomes, { ...context, price })),
    );
    const own = await run("run", "--for", "5000");
    expect(own.stdout).toContain("Prices of 2026-11, of the machine that the sweep measured.");
    // Four replicas at a dollar an hour.
    expect(own.stdout).toMatch(/tftrt_int8_bs16_count4 .*\$35,040/);
    const named = await run("run", "--for", "5000", "--spot");
    expect(named.stdout).toMatch(/Prices of \S+ \(n1-standard-8 with nvidia-tesla-t4, spot, /);
  });

  it("names what is missing", async () => {
    expect(await run("--for", "5000")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("npm run tune") as string,
    });
    expect(await run("none", "--for", "5000")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("result.json") as string,
    });
  });
});
