import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { World } from "../../bench/h200-explore";
import { exampleVariants, hostAloneMs, lawOf, recordedLaw } from "../../bench/h200-world";
import { gridNames } from "../../examples/gpu/grids";
import type { Variant } from "../../model-repo/variant";
import { resultSchema } from "../../tuning/results/result-schema";

const [tuned] = exampleVariants("tuned");
const law = recordedLaw();
/** Good for about 1 %. */
const shortRuns = { seeds: [1], warmupS: 3, measureS: 30, tolerance: 0.01 };

interface Recorded {
  readonly name: string;
  readonly settings: Pick<Variant, "maxBatchSize" | "instanceCount" | "queueDelayUs">;
  readonly perS: number;
}

/** SLO rates of docs/evidence/h200/grids. */
function recorded(part: string): Recorded[] {
  const file = join(__dirname, "../../docs/evidence/h200/grids", part, "result.json");
  const { variants } = resultSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  return variants.map(({ name, settings, sloRate }) => ({ name, settings, perS: sloRate!.estimate }));
}

describe("the recorded server in virtual time", () => {
  it.each(["explore", "grid", "grid-2"].flatMap(recorded))(
    "$name: holds the recorded rate at 100 ms within 12 %",
    ({ settings: { maxBatchSize, instanceCount, queueDelayUs }, perS }) => {
      const world = new World({ quantile: 0.95, boundMs: 100 }, law, shortRuns);
      const simulated = world.truePerS({ ...tuned!, maxBatchSize, instanceCount, queueDelayUs });
      expect(simulated / perS).toBeGreaterThan(0.88);
      expect(simulated / perS).toBeLessThan(1.12);
    },
  );

  it("is told by one host phase a batch size and one share of crowding within 6 %", () => {
    expect(law.residual).toBeLessThan(0.06);
    expect(law.crowding).toBeGreaterThan(0.2);
    expect(law.crowding).toBeLessThan(0.35);
  });

  it("computes as the bare model does on the same kind of GPU", () => {
    // docs/evidence/h200/grids/bare.json: 14,940 images/s in batches of 64.
    const { gpuMsPerBatch, gpuMsPerImage } = lawOf(law, tuned!);
    const perS = (1000 * 64) / (gpuMsPerBatch + 64 * gpuMsPerImage);
    expect(perS / 14_940).toBeGreaterThan(0.85);
    expect(perS / 14_940).toBeLessThan(1.05);
  });

  it("has instances that crowd the host, more the more there are", () => {
    const hostMs = [1, 2, 3, 4, 6, 8].map(
      (instanceCount) => lawOf(law, { ...tuned!, instanceCount }).hostMsPerImage,
    );
    expect(hostMs).toEqual([...hostMs].sort((a, b) => a - b));
    expect(hostMs[0]).toBeCloseTo(hostAloneMs(law, tuned!.maxBatchSize), 6);
  });
});

it.each(gridNames)(
  "%s is exhaustive: every batch size with every number of instances and every delay",
  (name) => {
    const grid = exampleVariants(name);
    const valuesOf = (key: "maxBatchSize" | "instanceCount" | "queueDelayUs"): number =>
      new Set(grid.map((variant) => variant[key])).size;
    expect(grid).toHaveLength(
      valuesOf("maxBatchSize") * valuesOf("instanceCount") * valuesOf("queueDelayUs"),
    );
    expect(new Set(grid.map((variant) => variant.name)).size).toBe(grid.length);
  },
);
