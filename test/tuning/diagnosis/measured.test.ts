import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { diagnoseMeasured } from "../../../tuning/diagnosis/measured";
import type { JudgedTrial, SystemFacts } from "../../../tuning/outcome";
import { readPointLog } from "../../../tuning/results/point-log";
import { judge } from "../../../tuning/statistics/verdict";
import type { ServerWindow } from "../../../tuning/trial";

const gpuFacts: SystemFacts = { wireCeilingPerS: null, clientCeilingPerS: null };

/** Recorded trials of a variant on the H200 of docs/evidence. */
function recorded(name: string): JudgedTrial[] {
  const file = join(__dirname, "../../../docs/evidence/h200/path/points.jsonl");
  return readPointLog(file)
    .records.filter(({ spec }) => spec.variant.name === name)
    .map(({ spec, result }) => judge(spec, result));
}

/** As the search asks: the highest rate that held. */
function diagnosed(
  trials: readonly JudgedTrial[],
  change: Partial<ServerWindow> = {},
  facts: SystemFacts = gpuFacts,
) {
  const changed = trials.map((trial) => ({
    ...trial,
    result: { ...trial.result, server: { ...trial.result.server, ...change } },
  }));
  const held = changed
    .filter(({ spec, verdict }) => spec.purpose !== "probe" && verdict === "pass")
    .reduce((best, one) => (one.ratePerS > best.ratePerS ? one : best));
  const sloRate = held.ratePerS;
  return {
    sloRate,
    ...diagnoseMeasured({ variant: held.spec.variant, sloRate, held, trials: changed, facts }),
  };
}

describe("recorded trials of a real GPU, which the model does not fit", () => {
  it("an untuned Python backend is bound by its host phase, and its instances hold each other up", () => {
    const { cause, summary, nextMove, evidence, sloRate } = diagnosed(recorded("untuned"));
    expect(cause).toBe("host-bound");
    expect(summary).toMatch(/the GPU works 1[0-9] % of it; they hold each other up/);
    expect(evidence["GPU busy"]).toBe("13 %");
    // Measured afterwards: CUDA graphs, pinned buffers and one thread an instance gave 9.55 times the rate.
    expect(nextMove!.change).toMatch(/^less host work an image in the backend/);
    expect(nextMove!.predictedGain).toBeGreaterThan(4);
    expect(nextMove!.predictedSloRate).toBeCloseTo(sloRate * (1 + nextMove!.predictedGain), 6);
  });

  it("four tuned instances are bound by the GPU", () => {
    const { cause, summary } = diagnosed(recorded("fp16_in8_count4"));
    expect(cause).toBe("gpu-bound");
    expect(summary).toMatch(/^The GPU is the limit: it works 93 % of the time at 9830 requests\/s/);
  });
});

describe("the same trials with another server window", () => {
  const untuned = recorded("untuned");

  it("without GPU metrics the phases cannot be told apart", () => {
    const { cause, summary, nextMove } = diagnosed(untuned, { gpuBusy: null });
    expect([cause, nextMove]).toEqual(["none", null]);
    expect(summary).toContain("no GPU use");
  });

  it("without execution times nothing is derived", () => {
    const { cause, summary } = diagnosed(untuned, { computeInputMs: null, computeInferMs: null });
    expect(cause).toBe("none");
    expect(summary).toContain("no execution times");
  });

  it("instances that are idle at the limit are not the cause", () => {
    const { cause, summary } = diagnosed(untuned, { computeInferMs: 2 });
    expect(cause).toBe("none");
    expect(summary).toContain("outside the executions");
  });

  it("where the CPU infers, busy instances are the CPU", () => {
    expect(diagnosed(untuned, {}, { ...gpuFacts, processor: "cpu" }).cause).toBe("cpu-bound");
  });

  it("instances that do not hold each other up are worth doubling, as far as the GPU and its memory allow", () => {
    const alone = untuned
      .filter(({ spec, verdict }) => spec.purpose !== "probe" && verdict === "pass")
      .slice(-1);
    const roomy = diagnosed(alone, { gpuBusy: 0.62 });
    expect(roomy.nextMove!.change).toBe("4 instances instead of 2; at most");
    expect(roomy.nextMove!.predictedGain).toBeCloseTo(0.93 / 0.62 - 1, 6);
    const full = diagnosed(alone, { gpuBusy: 0.62, gpuMemoryUsedBytes: 9e9, gpuMemoryTotalBytes: 1e10 });
    expect(full.nextMove).toBeNull();
  });
});
