import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deltaProblem, healthProblem, heartbeatProblem, registerProblem } from "../../loadgen/check-words";
import type { Delta } from "../../loadgen/protocol";
import { Tally, type TallyMessage } from "../../loadgen/tally";
import { loadSpec } from "./support/spec";

const spec = loadSpec({ addresses: ["a:1", "b:1"], imageFolder: "/images", warmupS: 2, measureS: 10 });
const none = new Tally().toMessage();
const delta = (measured: TallyMessage, warmup = none): Delta => ({
  ...{ runId: spec.id, sequence: 1, sentBytes: 1000 },
  ...{ measured, warmup },
});

/** What a worker really counts, in any mix. */
const tallies = (intervals: number): fc.Arbitrary<TallyMessage> =>
  fc
    .array(
      fc.record({
        interval: fc.integer({ min: 0, max: intervals - 1 }),
        ending: fc.constantFrom("ok", "late", "failed", "shed"),
        responseUs: fc.nat(5e6),
        address: fc.constantFrom(...spec.addresses),
        kind: fc.constantFrom("UNAVAILABLE", "wrong-answer"),
        isOnTime: fc.boolean(),
      }),
    )
    .map((requests) => {
      const tally = new Tally();
      for (const { interval, ending, responseUs, address, kind, isOnTime } of requests) {
        if (ending === "shed") {
          tally.shed(interval, isOnTime);
          continue;
        }
        tally.sent(responseUs / 10, isOnTime);
        const error = ending === "failed" ? { kind, message: "words" } : undefined;
        tally.ended({ interval, ending: ending, responseUs, serviceUs: responseUs, address, error });
        tally.slo.addInFlight(interval, 3);
      }
      return tally.toMessage();
    });

/** One good request in interval 0. */
function good(): TallyMessage {
  const tally = new Tally();
  tally.sent(100, true);
  tally.ended({
    ...{ interval: 0, ending: "ok", responseUs: 5000, serviceUs: 4900, address: "a:1" },
    error: undefined,
  });
  return tally.toMessage();
}

describe("reports", () => {
  it("whatever a worker counts is a report", () => {
    fc.assert(
      fc.property(tallies(10), tallies(2), (measured, warmup) => {
        expect(deltaProblem(delta(measured, warmup), spec, 12)).toBeUndefined();
      }),
    );
  });

  const one = good();
  const [sums] = one.intervals;
  const lies: readonly (readonly [string, object, RegExp])[] = [
    ["no histogram", { response: null }, /missing/],
    ["negative counts", { intervals: [{ ...sums, ok: -1 }] }, /^ok of -1$/],
    ["counts beyond all numbers", { intervals: [{ ...sums, failed: 1.8e19 }] }, /^failed of/],
    ["half a request", { intervals: [{ ...sums, ok: 0.5 }] }, /^ok of 0\.5/],
    ["more requests than times", { intervals: [{ ...sums, ok: 2 }] }, /^2 answered requests, but 1 response/],
    ["times that are none", { intervals: [{ ...sums, responseSumUs: NaN }] }, /^responseSumUs of NaN/],
    ["an endless sum", { response: { ...one.response, sumUs: Infinity } }, /sum Infinity/],
    ["a bucket too far", { service: { ...one.service, gaps: [1e9] } }, /histogram bucket/],
    ["more service times", { service: { ...one.service, counts: [2] } }, /^1 answered .* 2 service times/],
    ["more shed than late", { intervals: [{ ...sums, shed: 1 }] }, /^1 shed requests, but 0 late/],
    ["an interval behind the end", { intervals: [{ ...sums, index: 10 }] }, /^interval 10 of 10 s/],
    ["the future", { intervals: [{ ...sums, index: 6 }] }, /^interval 6 has not come yet/],
    [
      "a server nobody asked",
      { perAddress: [{ address: "c:1", answered: 1 }] },
      /"c:1", which is not loaded/,
    ],
    ["too few answers by server", { perAddress: [] }, /^1 answered requests, but 0 answers by address/],
    ["errors of nothing", { errors: [{ kind: "X", count: 1, message: "" }] }, /^0 failed .* 1 errors/],
    [
      "errors of a thousand classes",
      { errors: Array.from({ length: 1000 }, (_, i) => ({ kind: `k${i}`, count: 1, message: "" })) },
      /1000 classes of errors/,
    ],
    ["more sent in time than sent", { onTimeSends: 2 }, /^2 requests sent in time, but 1 sent/],
  ];
  it.each(lies)("%s: refused, measured and warm-up alike", (_, lie, problem) => {
    const told = { ...one, ...lie };
    expect(deltaProblem(delta(told), spec, 3)).toMatch(problem);
    // The warm-up is shorter, so its lies about time have other words.
    expect(deltaProblem(delta(one, told), spec, 3)).toBeDefined();
  });

  it("no tally, and bytes that are none", () => {
    expect(deltaProblem(delta(null as unknown as TallyMessage), spec, 3)).toMatch(/missing/);
    expect(deltaProblem({ ...delta(one), sentBytes: NaN }, spec, 3)).toBe("sentBytes of NaN");
  });
});

it("names, heartbeats and health", () => {
  const register = { name: "load-worker-7f9c", instanceId: "i", protocolVersion: 2, pid: 1, cores: 1 };
  expect(registerProblem(register)).toBeUndefined();
  for (const name of ["", " ", "a\u001b[2Jb", "n".repeat(254)])
    expect(registerProblem({ ...register, name })).toMatch(/a worker's name has 1 to 253/);
  const health = {
    ...{ loopDelayP99Ms: 1, cpuShare: 0.5, wireMbPerS: 3, latenessP50Ms: 0 },
    ...{ busyWaitShare: 0.4, busyWaitMs: 2 },
  };
  expect(healthProblem(health)).toBeUndefined();
  expect(healthProblem({ ...health, latenessP50Ms: NaN })).toBe("latenessP50Ms of NaN");
  expect(healthProblem({ ...health, busyWaitShare: -1 })).toBe("busyWaitShare of -1");
  expect(healthProblem(null)).toBe("there is none");
  const heartbeat = { ...health, runId: "", inFlight: 0, latenessP99Ms: 0, rssMb: 80, ratePerS: 10 };
  expect(heartbeatProblem(heartbeat)).toBeUndefined();
  expect(heartbeatProblem({ ...heartbeat, cpuShare: -0.1 })).toBe("cpuShare of -0.1");
});
