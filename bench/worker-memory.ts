/**
 * Memory of one load worker after 10^5, 3 x 10^5 and 10^6 requests of one measurement (with an argument: up to that many), after a
 * collection each: it must not grow with the number of requests. Small requests (192 bytes of tensor), flat out with 32 in flight; the
 * number of requests in a row with its memory is the one that the worker had reported by then.
 * Run: npx tsx bench/worker-memory.ts [requests, default 1000000]. Timing does not matter: other work on the machine only makes it longer.
 */
import { flatOut, sizes, benchOneWorker } from "./one-worker";

/** Longest run, seconds; it is stopped when the last count is reached. */
const MOST_S = 24 * 3600;
const [most = 1_000_000] = process.argv.slice(2).map(Number);
/** A first reading after the code is compiled, then three a decade. */
const marks = [20_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000].filter((count) => count < most);
marks.push(most);

const mb = (bytes: number): string => (bytes / 1e6).toFixed(1);

benchOneWorker(async (worker) => {
  process.stdout.write("| requests | RSS MB | heap MB | external MB | buffers MB |\n|---|---|---|---|---|\n");
  const readings: Promise<void>[] = [];
  const id = `memory-${Date.now()}`;
  const read = async (requests: number): Promise<void> => {
    const { rss, heapUsed, external, arrayBuffers } = await worker.memory();
    const cells = [requests, ...[rss, heapUsed, external, arrayBuffers].map(mb)];
    process.stdout.write(`| ${cells.join(" | ")} |\n`);
  };
  let next = 0;
  const result = await worker.run(
    { ...flatOut(32, MOST_S), ...sizes.small, id, warmupS: 0 },
    ({ total, phase }) => {
      if (phase !== "measuring" || total.planned < (marks[next] ?? Infinity)) return;
      while (total.planned >= (marks[next] ?? Infinity)) next++;
      readings.push(read(total.planned));
      if (next === marks.length) void Promise.all(readings).then(() => worker.stop(id));
    },
  );
  const { total, errors } = result;
  process.stdout.write(
    `in all ${total.planned} requests, ${total.failed} failed ${JSON.stringify(errors)}\n`,
  );
  await read(total.planned);
});
