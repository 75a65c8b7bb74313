import { describe, expect, it } from "vitest";
import type { LoadResult, LoadSpec } from "../../loadgen/load-spec";
import { judgeLoad, loadJson, renderLoad } from "../../scripts/load-report";

const slo = { quantile: 0.95, boundMs: 100 };
const spec = {
  id: "x",
  addresses: ["a:1", "b:1"],
  modelName: "m",
  shape: { kind: "constant", ratePerS: 10 },
  warmupS: 1,
  measureS: 10,
  knownAnswers: [{ classIndex: 1, label: "l", score: 1 }],
} as unknown as LoadSpec;

function result(ok: number, late: number, change: Partial<LoadResult> = {}): LoadResult {
  const times = { count: ok + late, meanMs: 20, p50Ms: 9.5, p90Ms: 30, p95Ms: 40, p99Ms: 50, maxMs: 60 };
  return {
    id: "x",
    valid: true,
    invalidReasons: [],
    intervalS: 1,
    intervals: [],
    total: { planned: ok + late, ok, late, failed: 0, shed: 0 },
    response: times,
    service: times,
    responseHistogram: [],
    health: { latenessP99Ms: 0.4, loopDelayP99Ms: 1, cpuShare: 0.25, wireMBPerS: 6, achievedShare: 1 },
    errors: {},
    perAddress: { "a:1": ok, "b:1": late },
    workers: 2,
    stop: null,
    measuredFromUnixMs: 0,
    measuredToUnixMs: 10_000,
    ...change,
  };
}

describe("verdict", () => {
  it("counts decide: exactly 95 of 100 hold p95, 94 do not", () => {
    expect(judgeLoad(spec, result(95, 5), slo)).toMatchObject({
      slo: "held",
      inTimeShare: 0.95,
      exitCode: 0,
    });
    expect(judgeLoad(spec, result(94, 6), slo)).toMatchObject({ slo: "broken", exitCode: 3 });
  });

  it("the stop rule breaks it, whatever the whole run's share is; an asked-for stop does not", () => {
    const reading = { atS: 5, ratePerS: 10, quantileMs: 130 };
    const finding = { rule: { ...slo, windowS: 3, minSamples: 1 }, lastGood: null, firstBad: reading };
    const stop = { atS: 6, reason: "p95 was bad", finding };
    expect(judgeLoad(spec, result(99, 1, { stop }), slo)).toMatchObject({ slo: "broken", answeredPerS: 20 });
    expect(judgeLoad(spec, result(99, 1, { stop: { ...stop, finding: null } }), slo).slo).toBe("held");
  });

  it("an invalid measurement and one without requests say nothing (k6#4283)", () => {
    expect(judgeLoad(spec, result(100, 0, { valid: false }), slo)).toMatchObject({
      slo: "unknown",
      exitCode: 4,
    });
    expect(judgeLoad(spec, result(0, 0), slo)).toMatchObject({
      slo: "unknown",
      inTimeShare: null,
      exitCode: 4,
    });
  });
});

it("text names verdict, errors, replicas, warnings and why it is invalid", () => {
  const text = renderLoad(
    spec,
    result(90, 10, {
      errors: { UNAVAILABLE: 3 },
      errorMessages: { UNAVAILABLE: "gone" },
      warnings: ["uneven replicas: ..."],
      valid: false,
      invalidReasons: ["client-bound: too slow"],
    }),
    slo,
  );
  for (const line of [
    /^load +constant 10\/s for 10\.0 s on m at a:1, b:1$/m,
    /^requests +100 planned \(10\.0\/s\), 100 answered/m,
    /^response +mean 20\.0 ms, p50 9\.50 ms/m,
    /^error +3 x UNAVAILABLE: gone$/m,
    /^replica +b:1 answered 10$/m,
    /^warning +uneven/m,
    /^invalid +client-bound: too slow$/m,
    /^SLO +p95 <= 100 ms cannot be judged: 90\.00 % in time$/m,
  ])
    expect(text).toMatch(line);
});

it("JSON has no NaN, no secrets and no megabytes of recorded arrivals", () => {
  const nothing = { count: 0, meanMs: NaN, p50Ms: NaN, p90Ms: NaN, p95Ms: NaN, p99Ms: NaN, maxMs: NaN };
  const json = JSON.parse(
    loadJson(
      { ...spec, shape: { kind: "recorded", atS: [0, 1, 2] }, tls: { caPem: "PEM", serverName: "" } },
      result(0, 0, { response: nothing }),
      slo,
    ),
  ) as { spec: unknown; slo: unknown; result: { response: unknown } };
  expect(json.spec).toMatchObject({ shape: { kind: "recorded", arrivals: 3 }, tls: true });
  expect(JSON.stringify(json)).not.toMatch(/PEM|knownAnswers/);
  expect(json.slo).toMatchObject({ quantile: 0.95, verdict: "unknown", inTimeShare: null });
  expect(json.result.response).toMatchObject({ count: 0, p95Ms: null });
});

it("workers that waited awake are named, with what that cost apart from the requests", () => {
  const { health } = result(1, 0);
  expect(renderLoad(spec, result(1, 0), slo)).not.toContain("awake");
  const awake = result(1, 0, { health: { ...health, busyWaitMs: 2, busyWaitShare: 0.456 } });
  expect(renderLoad(spec, awake, slo)).toMatch(
    /25 % of a core \(busiest worker\).* waits awake 2 ms for each send \(46 % of a core apart\)/,
  );
  expect(JSON.parse(loadJson(spec, awake, slo))).toMatchObject({
    result: { health: { cpuShare: 0.25, busyWaitMs: 2, busyWaitShare: 0.456 } },
  });
});
