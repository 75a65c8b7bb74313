import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkScaling, crossing, measureScaling, nextRate, type Point } from "../../tuning/scaling";
import type { TargetEndpoints } from "../../tuning/target";
import type { TrialSpec } from "../../tuning/trial";
import { makeTrialResult, makeVariant } from "./make";

const replicas: TargetEndpoints = {
  grpc: ["a:1", "b:1", "c:1"],
  metrics: ["http://a", "http://b", "http://c"],
};

/** Servers that hold `limit` requests/s together; the quantile grows with the square of the load. */
function servers(limit: (count: number) => number, valid = true) {
  const asked: { count: number; ratePerS: number }[] = [];
  const runner = {
    runOn: async (endpointsOf: () => TargetEndpoints, spec: TrialSpec) => {
      const count = endpointsOf().grpc.length;
      const ratePerS = spec.shape.kind === "users" ? 0 : (spec.shape as { ratePerS: number }).ratePerS;
      asked.push({ count, ratePerS });
      const quantileUs = 100_000 * (ratePerS / limit(count)) ** 2;
      const perAddress = Object.fromEntries(endpointsOf().grpc.map((address) => [address, 100]));
      return makeTrialResult({ valid, perAddress, responseHistogram: [[quantileUs, 500]] });
    },
  };
  const check = {
    ...{ replicas, runner, variant: makeVariant("a"), slo: { quantile: 0.95, boundMs: 100 }, seed: 1 },
    signal: new AbortController().signal,
  };
  return { check, asked };
}

describe("what several replicas hold together", () => {
  it("is found wherever it lies near: rates add up, or do not", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(2, 3),
        fc.double({ min: 0.75, max: 1.15, noNaN: true }),
        async (count, efficiency) => {
          const { check, asked } = servers((number) => number * 100 * efficiency);
          const scaling = await measureScaling(check, count, 100);
          if (typeof scaling === "string") throw new Error(scaling);
          expect(scaling.replicas).toBe(count);
          expect(scaling.factor / (count * efficiency)).toBeGreaterThan(0.97);
          expect(scaling.factor / (count * efficiency)).toBeLessThan(1.03);
          expect(asked.every((one) => one.count === count)).toBe(true);
          expect(asked.length).toBeLessThanOrEqual(5);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("is not known when nothing held, or a trial was invalid", async () => {
    expect(await measureScaling(servers(() => 20).check, 2, 100)).toMatch(
      /^2 servers hold the SLO at no rate near 2 x 100\.0 requests\/s/,
    );
    expect(await measureScaling(servers(() => 200, false).check, 2, 100)).toMatch(
      /^2 servers: what they hold together is not known \(the trial was invalid/,
    );
  });

  it("lies between the trials that held and missed, whatever their order", () => {
    const rates = fc.array(
      fc.record({
        ratePerS: fc.double({ min: 50, max: 150, noNaN: true }),
        excess: fc.double({ min: -1, max: 1, noNaN: true }),
      }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(rates, (seen: readonly Point[]) => {
        const found = crossing(seen);
        if (found === null) return;
        expect(found.low).toBeLessThanOrEqual(found.estimate * (1 + 1e-9));
        expect(found.high).toBeGreaterThanOrEqual(found.estimate * (1 - 1e-9));
        const missed = seen.filter(({ excess }) => excess > 0).map(({ ratePerS }) => ratePerS);
        if (missed.length > 0) expect(found.high).toBeLessThanOrEqual(Math.max(...missed));
        const next = nextRate(seen, 100);
        if (next !== null) expect(next).toBeGreaterThan(0);
      }),
    );
  });
});

describe("all replicas at their operating rate together", () => {
  it("hold the SLO or do not, in a sentence with the shares of the servers", async () => {
    expect(await checkScaling(servers(() => 1000).check, 100)).toMatch(
      /^3 servers at 3 x 100\.0 requests\/s .*2\.0 % missed the bound; shares of the servers: 33 %, 33 %, 33 %\): rates add up/,
    );
    expect(await checkScaling(servers(() => 1000, false).check, 100)).toMatch(
      /: not known \(the trial was invalid/,
    );
  });
});
