/** `npm run tune -- --executor onnx` as a process: real inference, a planted wrong conversion, and what it says without models. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { resultSchema } from "../../tuning/results/result-schema";
import { preparedModels, swappedWeight } from "../local-triton/onnx-model";

const checkout = resolve(__dirname, "..", "..");

function tune(...words: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((done) => {
    const command = ["--import", "tsx", "scripts/tune.ts", "--executor", "onnx", ...words];
    const child = execFile(process.execPath, command, { cwd: checkout }, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
    onTestFinished(() => void child.kill("SIGKILL"));
  });
}

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "tune-onnx-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("tune on ONNX Runtime", () => {
  it("measures this machine, and not a conversion whose colours are swapped", async () => {
    // Matrix products that take some milliseconds an image: a rate that any machine can offer.
    const work = 150;
    const models = preparedModels({
      net_fp32: { precision: "FP32", work },
      net_swapped: { precision: "INT8", weight: swappedWeight, work },
    });
    const out = join(folder(), "run");
    const variants = ["--variants", "net_swapped,net_fp32"];
    // A wide bound: what a busy machine adds is then small against it, and the load generator may be late by more.
    const run = await tune("--models", models, ...variants, "--slo", "p95=500ms", "--out", out);
    const result = resultSchema.parse(JSON.parse(readFileSync(join(out, "result.json"), "utf8")));
    expect(result, run.stderr).toMatchObject({
      processor: "cpu",
      simulated: false,
      timeDilation: 1,
      target: "local",
    });
    const [swapped, measured] = result.variants;
    expect(swapped).toMatchObject({
      name: "net_swapped",
      sloRate: null,
      trials: [],
      accuracy: { passed: false },
    });
    expect(swapped!.note).toContain(
      "net_swapped is excluded: on 24 held-out images its answers differ from those of net_fp32",
    );
    expect(measured).toMatchObject({ name: "net_fp32", gpuBusy: null, accuracy: null });
    // The manifest that the conversion left, against what was served.
    const { sloRate, standAlone } = measured!;
    expect(standAlone).toMatchObject({ batchSize: 1, imagesPerS: 100, on: "Abacus, 2 threads" });
    expect(standAlone!.servedShare).toBe(sloRate === null ? null : sloRate.estimate / 100);
    expect(result.notes.join()).toMatch(
      /speeds alone were measured on another machine, or on other cores \(Abacus, 3 cores\)/,
    );
    expect(measured!.trials.length).toBeGreaterThan(1);
    expect(measured!.trials.some(({ planned, failed }) => planned > 0 && failed === 0)).toBe(true);
    // On a machine that is busy with other things every trial near the limit may be invalid: then there is no rate, and it says so.
    if (measured!.sloRate === null) expect(measured!.note).toMatch(/valid/);
    else {
      expect(measured!.sloRate.estimate).toBeGreaterThan(5);
      expect(result.recommendation).toMatchObject({ variant: "net_fp32" });
      expect(run.code, run.stderr).toBe(0);
    }
    expect(run.stdout).toContain("inference on the CPU");
  }, 240_000);

  it("says how to prepare models, and which there are", async () => {
    const none = await tune("--models", "/nowhere/at-all");
    expect(none).toMatchObject({ code: 2, stdout: "" });
    expect(none.stderr).toMatch(
      /^tune: there are no prepared ONNX models in \/nowhere\/at-all: npm run convert/,
    );
    const models = preparedModels({ net_fp32: { precision: "FP32" } });
    const unknown = await tune("--models", models, "--variants", "net_fp23");
    expect(unknown.stderr).toBe(
      'tune: there is no variant "net_fp23"; did you mean "net_fp32"? Known variants: net_fp32, net_fp32_bs4\n',
    );
    expect(unknown.code).toBe(2);
  }, 60_000);
});
