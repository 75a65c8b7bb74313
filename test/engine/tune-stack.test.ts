import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { truthOf } from "../../serving-model/truth";
import { readResult } from "../../tuning/results/results-folder";
import { until } from "./cluster/program";
import { Environment } from "./environment";
import { preview, refresh, summary, up } from "./operations";
import { standInLaw, trialsIn, TunedStack, tuningPorts } from "./tuning";

/** The README's way from a deployed stack to the applied winner, with the commands that a person types. */
const [home, measured, reference] = ["tftrt_fp16", "tftrt_int8_bs8_count4", "original"];
let environment: Environment;
let stack: Stack;
let tuned: TunedStack;
const results = () => join(environment.dir, "results");
const script = (name: string, ...words: string[]) =>
  environment.script(`scripts/${name}.ts`, [...words, "--stack", "dev"]);

/** Of the measured variant with the stand-in's service times. */
function truth(): number {
  const { maxBatchSize, instanceCount, queueDelayUs } = findVariant(measured);
  const settings = {
    maxBatchSize,
    instanceCount,
    queueDelayUs,
    preferredBatchSizes: [],
    dynamicBatching: true,
  };
  return truthOf({ ...settings, law: standInLaw }, { quantile: 0.95, boundMs: 300 })!;
}

beforeAll(async () => {
  const { ports, forwards } = await tuningPorts();
  environment = await Environment.start(forwards);
  const config = {
    ...{ project: "test-project", asleep: "true", variant: home, monitoring: "false", conversionVm: "false" },
    // One process can play one worker.
    ...{ loadWorkers: "1", peakRatePerS: "500", sloBoundMs: "300" },
  };
  stack = await environment.stack(
    "dev",
    Object.fromEntries(Object.entries(config).map(([key, value]) => [`triton-slo-stack:${key}`, { value }])),
  );
  await environment.wake(stack);
  tuned = await TunedStack.start(environment, ports, home, measured, reference);
});
afterAll(async () => {
  await tuned?.processes.stop();
  await environment.close();
});

describe("a stack", () => {
  it("is looked at before it is measured", async () => {
    const { code, text } = await script("preflight");
    expect(text).toMatch(/ok +stack +dev, dev, nvidia-tesla-t4 in us-central1-a/);
    expect(text).toMatch(/ok +load workers +1 connected, on other machines than Triton/);
    expect(text).toMatch(/ok +cost +\d+\.\d\d US dollars an hour/);
    // The stack has seven variants in its bucket, the server here has three in its folder.
    expect(text).toMatch(/FAILED +model of tftrt_fp32 +not in the repository/);
    expect(code, text).toBe(2);
  });

  it("is swept while pods come and go: a true answer, nothing lost or doubled, nothing of Pulumi's changed", async () => {
    const out = results();
    rmSync(out, { recursive: true, force: true });
    const sweep = script("tune", "--variants", measured, "--out", out);
    let isRunning = true;
    void sweep.finally(() => (isRunning = false));
    const struck: string[] = [];
    for (const strike of ["replaceTriton", "replaceController", "evictWorker", "preemptNode"] as const) {
      const before = trialsIn(out).length;
      const next = async () => trialsIn(out).length > before || !isRunning;
      await until("another trial has ended", next, 120_000);
      // Into the trial after it.
      await new Promise((resolve) => setTimeout(resolve, 1200));
      if (!isRunning) break;
      await tuned[strike]();
      struck.push(strike);
    }
    const { code, text } = await sweep;
    expect(code, text).toBe(0);
    // A sweep has more trials than there are strikes.
    expect(struck, text).toHaveLength(4);
    expect(text).toMatch(/about \d+ min? .*list prices/);
    expect(text).toMatch(/the way from the load workers passes/);
    // At the least the trials of the deleted servers are not used.
    expect(text.match(/trying again/g)!.length, text).toBeGreaterThan(1);
    const result = readResult(out);
    expect(result).toMatchObject({
      ...{ target: "stack", simulated: false, endedEarly: null, missingVariants: [] },
      ...{ slo: { quantile: 0.95, boundMs: 300 }, recommendation: { variant: measured } },
    });
    expect(result.cost!.usd).toBeGreaterThan(0);
    expect(result.price!.usdPerReplicaHour).toBeGreaterThan(0.1);
    const found = result.variants[0]!.sloRate!.estimate / truth();
    console.log(`found ${found.toFixed(2)} of the SLO rate in virtual time`);
    // A busy machine takes some of it, and batches that are made up beforehand some more.
    expect(found).toBeGreaterThan(0.5);
    expect(found).toBeLessThan(1.5);
    const valid = trialsIn(out);
    expect(new Set(valid.map(({ key }) => key)).size).toBe(valid.length);
    expect(result.variants[0]!.trials.filter((trial) => trial.valid)).toHaveLength(valid.length);
    expect(await tuned.loaded()).toEqual([home]);
    expect(await environment.api.list("/apis/coordination.k8s.io/v1/namespaces/load/leases")).toEqual([]);
    expect(summary(await preview(stack))).toEqual([]);
    expect(summary(await refresh(stack))).toEqual([]);
  });

  it("gets the winner by its configuration, and keeps the promise", async () => {
    const out = results();
    const applied = await script("apply", out, "--yes");
    expect(applied.text).toMatch(new RegExp(`variant: .* -> ${measured}`));
    expect(applied.code, applied.text).toBe(0);
    const early = await script("verify", out);
    expect([early.code, early.text]).toEqual([
      2,
      expect.stringMatching(/but tftrt_fp16 is served.*npm run apply/),
    ]);
    expect(summary(await up(stack))).toEqual(["update triton"]);
    await tuned.processes.replaceTriton(measured);
    // A promise with room: how near the limit one can go on a busy machine is not the question here.
    const result = readResult(out);
    const modest = result.variants.map((one) => ({ ...one, operatingRate: one.operatingRate! * 0.6 }));
    writeFileSync(join(out, "result.json"), JSON.stringify({ ...result, variants: modest }));
    const { code, text } = await script("verify", out);
    expect(text).toMatch(/The promise holds\./);
    expect(code, text).toBe(0);
    expect(await tuned.loaded()).toEqual([measured]);
  });
});
