/** A recorded measurement as files: CSV for spreadsheets, HdrHistogram log for its own tools. */
import * as hdr from "hdr-histogram-js";
import { pairsOfSparse, type SparseHistogram } from "../histogram";
import type { LoadSecond, RecordedSecond } from "./load-second";

/** Columns of the CSV file; times in milliseconds, rates per second. */
const columns: readonly (readonly [string, (second: LoadSecond) => number | string | null])[] = [
  ["at_s", ({ atS }) => atS],
  ["time", ({ unixMs }) => new Date(unixMs).toISOString()],
  ["phase", ({ phase }) => phase],
  ["rate_per_s", ({ ratePerS }) => ratePerS],
  ["offered_per_s", ({ offeredPerS }) => offeredPerS],
  ["users", ({ users }) => users],
  ["answered", ({ answered }) => answered],
  ["failed", ({ failed }) => failed],
  ["shed", ({ shed }) => shed],
  ["p50_ms", ({ p50Ms }) => p50Ms],
  ["p95_ms", ({ p95Ms }) => p95Ms],
  ["p99_ms", ({ p99Ms }) => p99Ms],
  ["lateness_p99_ms", ({ latenessP99Ms }) => latenessP99Ms],
  ["in_flight", ({ inFlight }) => inFlight],
  ["workers", ({ workers }) => workers],
  ["server_batch_size", ({ server }) => server?.batchSize ?? null],
  ["server_queue_ms", ({ server }) => server?.queueMs ?? null],
  ["server_gpu_busy", ({ server }) => server?.gpuBusy ?? null],
];

/** A line a second; what is not known is empty. */
export function toCsv(seconds: readonly LoadSecond[]): string {
  const rows = seconds.map((second) => columns.map(([, read]) => read(second) ?? "").join(","));
  return [columns.map(([name]) => name).join(","), ...rows, ""].join("\n");
}

/** Three digits: an error of 0.1 %, as that of the histograms that the workers send. */
const SIGNIFICANT_DIGITS = 3;

/**
 * HdrHistogram log (format 1.3), one interval a second; values are microseconds of response time, the printed maximum is in milliseconds,
 * timestamps are seconds from the start. A bucket's lower bound stands for all of its values.
 */
export function toHdrLog(recorded: readonly RecordedSecond[], remark: string): string {
  const startUnixMs = (recorded[0]?.second.unixMs ?? 1000) - 1000;
  const lines = recorded.map(({ second, response }, index) => {
    const fromUnixMs = recorded[index - 1]?.second.unixMs ?? startUnixMs;
    // A clock that is set back makes no interval of negative length.
    const lengthMs = Math.max(0, second.unixMs - fromUnixMs);
    const figures = [fromUnixMs - startUnixMs, lengthMs, response.maxUs].map((value) =>
      (value / 1000).toFixed(3),
    );
    return [...figures, hdr.encodeIntoCompressedBase64(hdrHistogram(response))].join(",");
  });
  return [
    `#[${remark.replaceAll(/\s+/g, " ")}; response times in microseconds]`,
    "#[Histogram log format version 1.3]",
    `#[StartTime: ${(startUnixMs / 1000).toFixed(3)} (seconds since epoch), ${new Date(startUnixMs).toISOString()}]`,
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"',
    ...lines,
    "",
  ].join("\n");
}

function hdrHistogram(sparse: SparseHistogram): hdr.Histogram {
  const histogram = hdr.build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: 2 ** 36,
    numberOfSignificantValueDigits: SIGNIFICANT_DIGITS,
    bitBucketSize: 32,
    useWebAssembly: false,
  });
  for (const [valueUs, count] of pairsOfSparse(sparse))
    histogram.recordValueWithCount(Math.max(1, valueUs), count);
  return histogram;
}
