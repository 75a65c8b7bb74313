import * as hdr from "hdr-histogram-js";
import { expect, it } from "vitest";
import { toCsv, toHdrLog } from "../../loadgen/history/exports";
import type { LoadSecond, RecordedSecond } from "../../loadgen/history/load-second";
import { Histogram } from "../../loadgen/histogram";

const second: LoadSecond = {
  atS: 1,
  unixMs: Date.UTC(2026, 0, 2, 3, 4, 5),
  phase: "measuring",
  ratePerS: 100,
  answered: 99,
  failed: 1,
  shed: 0,
  p50Ms: 10.5,
  p95Ms: null,
  p99Ms: 30,
  latenessP99Ms: null,
  inFlight: 7,
  users: null,
  offeredPerS: 100,
  workers: 2,
  perAddress: {},
  server: { batchesPerS: 5, batchSize: 4, queueMs: 1.5, gpuBusy: null },
};

function recorded(index: number, timesUs: readonly number[]): RecordedSecond {
  const histogram = new Histogram();
  for (const time of timesUs) histogram.record(time);
  return {
    second: { ...second, atS: index + 1, unixMs: second.unixMs + 1000 * index },
    response: histogram.toSparse(),
  };
}

it("CSV: a heading, a line a second, empty where nothing is known", () => {
  const [heading, line, end] = toCsv([second]).split("\n");
  const cells = Object.fromEntries(heading!.split(",").map((name, i) => [name, line!.split(",")[i]]));
  expect(cells).toMatchObject({
    at_s: "1",
    time: "2026-01-02T03:04:05.000Z",
    rate_per_s: "100",
    users: "",
    p95_ms: "",
    in_flight: "7",
    server_batch_size: "4",
    server_gpu_busy: "",
  });
  expect(end).toBe("");
});

it("the HdrHistogram log is read back by the library's own reader, with every value within 0.2 %", () => {
  const times = [[1, 900, 12_345, 98_765], [250_000, 3_000_000], []];
  const text = toHdrLog(
    times.map((values, index) => recorded(index, values)),
    "poisson\n400/s",
  );
  expect(text).toMatch(
    /^#\[poisson 400\/s; response times in microseconds\]\n#\[Histogram log format version 1\.3\]\n/,
  );
  const reader = new hdr.HistogramLogReader(text);
  for (const [index, values] of times.entries()) {
    const histogram = reader.nextIntervalHistogram() as hdr.Histogram;
    expect(histogram.totalCount).toBe(values.length);
    for (const [rank, value] of values.entries()) {
      const found = histogram.getValueAtPercentile((100 * (rank + 1)) / values.length);
      expect(Math.abs(found - value)).toBeLessThanOrEqual(Math.max(1, 0.002 * value));
    }
    expect(histogram.startTimeStampMsec).toBeCloseTo(second.unixMs + 1000 * (index - 1), -1);
  }
});

it("the log's intervals are as long as they were: the last one ends with the load", () => {
  const [whole, last] = [recorded(0, [900]), recorded(1, [800])];
  const cut = { ...last, second: { ...last.second, unixMs: whole.second.unixMs + 270 } };
  const lines = toHdrLog([whole, cut], "load").trimEnd().split("\n").slice(-2);
  expect(lines.map((line) => line.split(",").slice(0, 3))).toEqual([
    ["0.000", "1.000", "0.900"],
    ["1.000", "0.270", "0.800"],
  ]);
});
