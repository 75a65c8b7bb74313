/**
 * How well one load worker keeps time near its capacity: event-loop delay and lateness (p50, p99) at 50 % and 80 % of the rate that it could send
 * on a core of its own. That rate is measured first, flat out with 32 in flight: answered requests per second over the share of a core
 * that the worker used, so that a sink or other work on the machine, which also take time, do not count as its own.
 * Run: npx tsx bench/worker-load.ts [seconds a part, default 15] [rounds, default 3]
 */
import type { LoadResult, LoadSpec } from "../loadgen/load-spec";
import { flatOut, sizes, startOneWorker, type OneWorker } from "./one-worker";

const [seconds = 15, rounds = 3] = process.argv.slice(2).map(Number);
const WARMUP_S = 5;
const shares = [0.5, 0.8];

function row(size: string, load: string, { response, health, valid }: LoadResult, measureS: number): string {
  const cells = [
    size,
    load,
    (response.count / measureS).toFixed(0),
    (100 * health.cpuShare).toFixed(0),
    health.loopDelayP99Ms.toFixed(2),
    health.latenessP99Ms.toFixed(2),
    response.p50Ms.toFixed(2),
    response.p99Ms.toFixed(2),
    valid ? "yes" : "no",
  ];
  return `| ${cells.join(" | ")} |\n`;
}

async function measure(worker: OneWorker, name: keyof typeof sizes): Promise<void> {
  const common: Partial<LoadSpec> = { ...sizes[name], warmupS: WARMUP_S };
  for (let round = 1; round <= rounds; round++) {
    const flat = await worker.run({ ...common, ...flatOut(32, seconds) });
    process.stdout.write(row(name, "flat out", flat, seconds));
    const capacityPerS = flat.response.count / seconds / flat.health.cpuShare;
    for (const share of shares) {
      const ratePerS = Math.round(share * capacityPerS);
      const result = await worker.run({
        ...common,
        ...{ shape: { kind: "poisson", ratePerS }, measureS: seconds, maxInFlight: 10_000, seed: round },
      });
      process.stdout.write(row(name, `${100 * share} % of ${capacityPerS.toFixed(0)}/s`, result, seconds));
    }
  }
}

async function main(): Promise<void> {
  const worker = await startOneWorker();
  try {
    const head = "requests|load|answered/s|CPU %|loop delay p99 ms|lateness p99 ms|p50 ms|p99 ms|valid".split(
      "|",
    );
    process.stdout.write(`| ${head.join(" | ")} |\n| ${head.map(() => "---").join(" | ")} |\n`);
    await measure(worker, "small");
    await measure(worker, "image");
  } finally {
    await worker.close();
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  },
);
