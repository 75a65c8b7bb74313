import { describe, expect, it } from "vitest";
import { World } from "../../bench/h200-explore";
import { exampleVariants, hostMsWith, recordedLaw } from "../../bench/h200-world";
import { gridNames } from "../../examples/gpu/grids";

const [tuned] = exampleVariants("tuned");
const law = recordedLaw();
/** Good for about 1 %. */
const shortRuns = { seeds: [1], warmupS: 3, measureS: 30, tolerance: 0.01 };

describe("the recorded server in virtual time", () => {
  // SLO rates of docs/evidence/h200.
  it.each([
    [1, 2000, 4016],
    [2, 2000, 7537],
    [4, 2000, 9830],
    [4, 0, 10_134],
  ])(
    "%i instances, queue delay %i us: holds the recorded rate within 5 %%",
    (instanceCount, queueDelayUs, perS) => {
      const world = new World({ quantile: 0.95, boundMs: 100 }, law, shortRuns);
      const simulated = world.truePerS({ ...tuned!, instanceCount, queueDelayUs });
      expect(simulated / perS).toBeGreaterThan(0.95);
      expect(simulated / perS).toBeLessThan(1.05);
    },
  );

  it("computes as the bare model does on the same kind of GPU", () => {
    // docs/evidence/h200/bare.json: 14,761 images/s in batches of 64.
    const perS = (1000 * 64) / (law.gpuMsPerBatch + 64 * law.gpuMsPerImage);
    expect(perS / 14_761).toBeGreaterThan(0.85);
    expect(perS / 14_761).toBeLessThan(1.05);
  });

  it("has instances that crowd the host, more the more there are", () => {
    const counts = [1, 2, 3, 4, 6, 8];
    const times = counts.map((count) => hostMsWith(law.host, count));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    for (const { instances, msPerImage } of law.host.recorded)
      expect(hostMsWith(law.host, instances)).toBe(msPerImage);
    // Beyond the recorded numbers the host passes no more than there.
    expect(8 / times[5]!).toBeCloseTo(4 / times[3]!, 6);
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
