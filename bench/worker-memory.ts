/**
 * Memory of one load worker, after a collection each: it must neither grow with the number of requests nor with a server's silence.
 *
 * `small` (192 bytes of tensor) and `image` (602,112): after 10^5, 3 x 10^5, 10^6 ... requests of one measurement, flat out with 32 in
 * flight. `silent` and `deaf`: every five seconds of a load of 500 requests/s of 602,112 bytes, which may have 5,000 in flight, at a server
 * that reads them but answers none, and at one that does not even read.
 * The number of requests in a row with its memory is the one that the worker had reported by then.
 * Run: npx tsx bench/worker-memory.ts [small|image|silent|deaf] [requests, default 1000000]
 * Timing does not matter: other work on the machine only makes it longer.
 */
import type { LoadProgress, LoadResult } from "../loadgen/load-spec";
import { flatOut, sizes, benchOneWorker, type OneWorker, type SinkKind } from "./one-worker";

/** Longest run, seconds; it is stopped when the last count is reached. */
const MOST_S = 24 * 3600;
const RATE_PER_S = 500;
const MOST_IN_FLIGHT = 5000;
const STALL_S = 60;
const STALL_EVERY_S = 5;
const [what = "small", mostText = "1000000"] = process.argv.slice(2);
const most = Number(mostText);

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

async function read(worker: OneWorker, requests: number): Promise<void> {
  const { rss, peakRss, heapUsed, external, arrayBuffers } = await worker.memory();
  const cells = [requests, ...[rss, peakRss, heapUsed, external, arrayBuffers].map(mb)];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function ended({ total, errors }: LoadResult): string {
  const { planned, failed, shed } = total;
  return `in all ${planned} requests, ${failed} failed, ${shed} shed ${JSON.stringify(errors)}\n`;
}

/** Rows at counts of requests: a first one after the code is compiled, then two a decade. */
async function byRequests(worker: OneWorker, size: keyof typeof sizes): Promise<void> {
  const marks = [20_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000].filter((count) => count < most);
  marks.push(most);
  const readings: Promise<void>[] = [];
  const id = `memory-${Date.now()}`;
  let next = 0;
  const onProgress = ({ total, phase }: LoadProgress): void => {
    if (phase !== "measuring" || total.planned < (marks[next] ?? Infinity)) return;
    while (total.planned >= (marks[next] ?? Infinity)) next++;
    readings.push(read(worker, total.planned));
    if (next === marks.length) void Promise.all(readings).then(() => worker.stop(id));
  };
  const result = await worker.run({ ...flatOut(32, MOST_S), ...sizes[size], id, warmupS: 0 }, onProgress);
  process.stdout.write(ended(result));
  await read(worker, result.total.planned);
}

/** Rows at times. */
async function byTime(worker: OneWorker): Promise<void> {
  let lastS = -Infinity;
  const onProgress = ({ total, phase, elapsedS }: LoadProgress): void => {
    if (phase !== "measuring" || elapsedS - lastS < STALL_EVERY_S) return;
    lastS = elapsedS;
    void read(worker, total.planned);
  };
  const result = await worker.run(
    {
      ...sizes.image,
      ...{ shape: { kind: "poisson", ratePerS: RATE_PER_S }, maxInFlight: MOST_IN_FLIGHT },
      ...{ warmupS: 0, measureS: STALL_S, deadlineMs: 1000 * STALL_S },
    },
    onProgress,
  );
  process.stdout.write(ended(result));
}

const sinkKind: SinkKind = what === "silent" || what === "deaf" ? what : "answers";
if (sinkKind === "answers" && !(what in sizes)) {
  process.stderr.write(`worker-memory: "${what}" is none of small, image, silent, deaf\n`);
  process.exit(2);
}
benchOneWorker(async (worker) => {
  process.stdout.write(
    "| requests | RSS MB | peak RSS MB | heap MB | external MB | buffers MB |\n|---|---|---|---|---|---|\n",
  );
  await (sinkKind === "answers" ? byRequests(worker, what as keyof typeof sizes) : byTime(worker));
}, sinkKind);
