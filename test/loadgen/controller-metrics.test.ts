/** What the controller's /metrics add up to: exactly what measurements report. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ControllerMetrics } from "../../loadgen/controller-metrics";
import { Histogram, pairsOfSparse } from "../../loadgen/histogram";
import { loadMetrics } from "../../loadgen/metric-names";
import { Tally } from "../../loadgen/tally";
import { parsePrometheusText, type MetricSample } from "../../tuning/prometheus-text";
import { loadSpec } from "./support/spec";

const spec = loadSpec({ addresses: ["a:1"], imageFolder: "images", id: "m1", sloBoundMs: 100 });

/** A tally of answered requests with these response times, failed ones, shed ones. */
function tally(responsesUs: readonly number[], failed = 0, shed = 0): Tally {
  const counted = new Tally();
  const common = { interval: 0, serviceUs: 1000, address: "a:1" };
  for (const responseUs of responsesUs) {
    counted.sent(responseUs / 100, true);
    const ending = responseUs <= spec.sloBoundMs * 1000 ? "ok" : "late";
    counted.ended({ ...common, ending, responseUs, error: undefined });
  }
  for (let index = 0; index < failed; index++) {
    const error = { kind: "UNAVAILABLE", message: "queue" };
    counted.ended({ ...common, ending: "failed", responseUs: 1, error });
  }
  for (let index = 0; index < shed; index++) counted.shed(0, true);
  return counted;
}

function read(
  metrics: ControllerMetrics,
): (name: string, labels?: Readonly<Record<string, string>>) => number | undefined {
  const samples: readonly MetricSample[] = parsePrometheusText(metrics.exposition([]));
  return (name, labels = {}) =>
    samples.find(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    )?.value;
}

describe("counters", () => {
  it("have every series from the start, at zero, so that the first failure is a rise", () => {
    const value = read(new ControllerMetrics({ sloBoundMs: 100 }));
    for (const outcome of ["ok", "late", "shed", "failed"])
      expect(value(loadMetrics.requests, { outcome })).toBe(0);
    for (const kind of ["UNAVAILABLE", "wrong-answer"]) expect(value(loadMetrics.errors, { kind })).toBe(0);
    for (const result of ["valid", "invalid", "aborted"])
      expect(value(loadMetrics.measurements, { result })).toBe(0);
    expect(value(loadMetrics.sentBytes)).toBe(0);
    expect(value(loadMetrics.workers)).toBe(0);
  });

  it("count each outcome once: shed requests are not late ones as well", () => {
    const metrics = new ControllerMetrics({ sloBoundMs: 100 });
    metrics.counted(spec, tally([50_000, 150_000], 3, 4).toMessage(), 700);
    metrics.counted(spec, tally([60_000]).toMessage(), 300);
    const value = read(metrics);
    const outcomes = ["ok", "late", "shed", "failed"].map((outcome) =>
      value(loadMetrics.requests, { outcome }),
    );
    expect(outcomes).toEqual([2, 1, 4, 3]);
    expect(value(loadMetrics.errors, { kind: "UNAVAILABLE" })).toBe(3);
    expect(value(loadMetrics.sentBytes)).toBe(1000);
    expect(value(`${loadMetrics.serviceSeconds}_count`)).toBe(3);
    expect(value(`${loadMetrics.serviceSeconds}_sum`)).toBeCloseTo(0.003, 9);
  });

  it("have an exact bucket at the objective's bound, whatever the times and the bound are", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(7, 50, 100, 250, 333, 1000),
        fc.array(fc.double({ min: 0.9, max: 1.1, noNaN: true }), { maxLength: 50 }),
        (sloBoundMs, shares) => {
          const bounded = { ...spec, sloBoundMs };
          const metrics = new ControllerMetrics({ sloBoundMs });
          const counted = new Tally();
          const ok = shares.filter((share) => share * sloBoundMs * 1000 <= sloBoundMs * 1000).length;
          for (const share of shares) {
            const responseUs = share * sloBoundMs * 1000;
            const ending = responseUs <= sloBoundMs * 1000 ? "ok" : "late";
            counted.ended({
              interval: 0,
              serviceUs: 1,
              address: "a:1",
              ending,
              responseUs,
              error: undefined,
            });
          }
          metrics.counted(bounded, counted.toMessage(), 0);
          const value = read(metrics);
          const bucket = `${loadMetrics.responseSeconds}_bucket`;
          expect(value(bucket, { le: String(sloBoundMs / 1000) })).toBe(ok);
          expect(value(bucket, { le: "+Inf" })).toBe(shares.length);
          const all = parsePrometheusText(metrics.exposition([])).filter(({ name }) => name === bucket);
          const counts = all.map((sample) => sample.value);
          expect(counts).toEqual([...counts].sort((a, b) => a - b));
          expect(counts.every((count) => count >= 0)).toBe(true);
        },
      ),
    );
  });

  it("have a bucket at the lateness that makes a trial invalid", () => {
    const metrics = new ControllerMetrics({ sloBoundMs: 100 });
    const counted = new Tally();
    for (const latenessUs of [100, 4999, 5000, 5100, 90_000]) counted.sent(latenessUs, true);
    metrics.counted(spec, counted.toMessage(), 0);
    expect(read(metrics)(`${loadMetrics.latenessSeconds}_bucket`, { le: "0.005" })).toBe(3);
  });

  it("tell valid, invalid and aborted measurements apart", () => {
    const metrics = new ControllerMetrics({ sloBoundMs: 100 });
    const result = (valid: boolean) => ({ valid }) as Parameters<ControllerMetrics["ended"]>[0];
    for (const ended of [result(true), result(true), result(false), undefined]) metrics.ended(ended);
    const value = read(metrics);
    const counts = ["valid", "invalid", "aborted"].map((name) =>
      value(loadMetrics.measurements, { result: name }),
    );
    expect(counts).toEqual([2, 1, 1]);
  });
});

describe("the running measurement", () => {
  it("is named by variant and trial while it runs, and only then", () => {
    const metrics = new ControllerMetrics({ sloBoundMs: 100 });
    const { measurementRunning } = loadMetrics;
    expect(read(metrics)(measurementRunning)).toBeUndefined();
    metrics.started({ ...spec, subject: { variant: 'odd "name"\\', trial: "confirm\n450/s" } });
    expect(metrics.exposition([])).toContain(
      `${measurementRunning}{variant="odd \\"name\\"\\\\",trial="confirm\\n450/s",id="m1"} 1`,
    );
    metrics.ended(undefined);
    expect(read(metrics)(measurementRunning)).toBeUndefined();
  });

  it("falls back on model and id", () => {
    const metrics = new ControllerMetrics({ sloBoundMs: 100 });
    metrics.started(spec);
    expect(read(metrics)(loadMetrics.measurementRunning, { variant: "model", trial: "m1" })).toBe(1);
  });
});

it("pairs of a sparse histogram are those of the whole one", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 10_000_000 }), { maxLength: 100 }), (values) => {
      const histogram = new Histogram();
      for (const value of values) histogram.record(value);
      expect(pairsOfSparse(histogram.toSparse())).toEqual(histogram.pairs());
    }),
  );
});
