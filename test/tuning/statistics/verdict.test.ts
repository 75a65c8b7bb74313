import { describe, expect, it } from "vitest";
import type { LoadShape } from "../../../loadgen/load-spec";
import { findVariant } from "../../../model-repo/catalogue";
import { serviceLawFor } from "../../../serving-model/t4";
import { SimulatedRunner } from "../../../tuning/search/simulated-runner";
import { judge } from "../../../tuning/statistics/verdict";
import { makeTrialResult, makeTrialSpec } from "../make";

const variant = findVariant("tftrt_fp16_bs8_count4");
const runner = new SimulatedRunner({
  serverFor: (served) => ({ ...served, dynamicBatching: true, law: serviceLawFor(served) }),
});

function judged(shape: LoadShape, seed = 1) {
  const spec = makeTrialSpec({ variant, shape, seed, warmupS: 2, measureS: 10 });
  return judge(spec, runner.runNow(spec));
}

describe("verdict of a trial", () => {
  it("passes below the knee, fails above it", () => {
    for (let seed = 1; seed <= 5; seed++) {
      expect(judged({ kind: "poisson", ratePerS: 1100 }, seed).verdict).toBe("pass");
      const over = judged({ kind: "poisson", ratePerS: 1450 }, seed);
      expect(over.verdict).toBe("fail");
      expect(over.reason).toMatch(/^Saturated: the number in flight grows by \d+ a second/);
    }
  });

  it("judges constant arrivals and users as well", () => {
    expect(judged({ kind: "constant", ratePerS: 1280 }).verdict).toBe("pass");
    expect(judged({ kind: "constant", ratePerS: 1400 }).verdict).toBe("fail");
    const users = (count: number) =>
      judged({ kind: "users", users: count, spawnPerS: count, thinkMinS: 0.8, thinkMaxS: 1.2 });
    expect(users(1250).verdict).toBe("pass");
    expect(users(1600).verdict).toBe("fail");
    // Throughput, not the number of users: the server answers 1,303 a second.
    expect(users(1600).ratePerS).toBeGreaterThan(1200);
    expect(users(1600).ratePerS).toBeLessThan(1400);
  });

  it("gives figures in one sentence", () => {
    const { reason, missShare } = judged({ kind: "poisson", ratePerS: 1100 });
    expect(reason).toMatch(
      /^0\.00 % of the requests missed the SLO, interval 0\.00 % to \d\.\d\d %, all within the allowed 5\.00 %\./,
    );
    expect(missShare).toMatchObject({ estimate: 0, low: 0, level: 0.95 });
  });

  it("is undecided about a short window at the knee", () => {
    const verdicts = [1, 2, 3, 4, 5, 6, 7, 8].map(
      (seed) => judged({ kind: "poisson", ratePerS: 1290 }, seed).verdict,
    );
    expect(verdicts).toContain("undecided");
  });
});

describe("no data is never a pass", () => {
  const spec = makeTrialSpec();

  it("nothing planned", () => {
    const total = { planned: 0, ok: 0, late: 0, failed: 0, shed: 0 };
    const { verdict, reason, missShare } = judge(spec, makeTrialResult({ total, intervals: [] }));
    expect(verdict).toBe("undecided");
    expect(reason).toMatch(/No request was planned/);
    expect(missShare).toMatchObject({ low: 0, high: 1 });
  });

  it("an invalid trial, with its reasons", () => {
    const { verdict, reason } = judge(
      spec,
      makeTrialResult({ valid: false, invalidReasons: ["a worker was lost"] }),
    );
    expect(verdict).toBe("undecided");
    expect(reason).toMatch(/invalid.*a worker was lost/);
  });

  it("fewer requests than independent ones would need", () => {
    const counts = { planned: 50, ok: 50, late: 0, failed: 0, shed: 0 };
    const interval = { ...counts, index: 0, responseSumMs: 500, answered: 50, inFlight: 0 };
    const { verdict, reason } = judge(
      spec,
      makeTrialResult({ total: counts, intervals: [interval], intervalS: 20 }),
    );
    expect(verdict).toBe("undecided");
    expect(reason).toMatch(/Only 50 requests; at least 59 are needed/);
  });
});

describe("failed requests", () => {
  it("count as misses", () => {
    const intervals = Array.from({ length: 10 }, (_, index) => ({
      index,
      planned: 100,
      ok: 80,
      late: 0,
      failed: 20,
      shed: 0,
      responseSumMs: 1000,
      answered: 80,
      inFlight: 2,
    }));
    const total = { planned: 1000, ok: 800, late: 0, failed: 200, shed: 0 };
    expect(judge(makeTrialSpec({ measureS: 10 }), makeTrialResult({ intervals, total }))).toMatchObject({
      verdict: "fail",
      missShare: { estimate: expect.closeTo(0.2, 9) as number },
    });
  });
});
