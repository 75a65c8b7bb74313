/**
 * How well one load worker keeps time near its capacity: event-loop delay and lateness (p99) of a Poisson load at 50 % and 80 % of the rate
 * that it and a sink of its own passed right before, flat out with 32 in flight. Two columns tell the machine's part from the worker's: the
 * event-loop delay of this process, which has next to nothing to do meanwhile, and the delay that the worker's own turns cause, in CPU time
 * (warm-up included). A row also says how much of a core the worker used, and the load average of a minute.
 * Run: npx tsx bench/worker-load.ts [seconds a part, default 15] [rounds, default 3]
 */
import { loadavg } from "node:os";
import type { LoadResult, LoadSpec } from "../loadgen/load-spec";
import { HealthMonitor } from "../loadgen/health-monitor";
import { flatOut, sizes, benchOneWorker, type OneWorker } from "./one-worker";

const [seconds = 15, rounds = 3] = process.argv.slice(2).map(Number);
const WARMUP_S = 5;
const shares = [0.5, 0.8];

interface Measured {
  readonly result: LoadResult;
  /** Event-loop delay p99 of an idle process meanwhile, milliseconds. */
  readonly idleLoopDelayP99Ms: number;
  /** What the worker's own turns delayed its loop, milliseconds of CPU time. */
  readonly ownDelayP99Ms: number;
}

async function measured(worker: OneWorker, change: Partial<LoadSpec>): Promise<Measured> {
  await worker.ownDelayP99Ms();
  const idle = new HealthMonitor(() => 0);
  const result = await worker.run({ ...change, warmupS: WARMUP_S, measureS: seconds });
  const idleLoopDelayP99Ms = idle.read().loopDelayP99Ms;
  idle.stop();
  return { result, idleLoopDelayP99Ms, ownDelayP99Ms: await worker.ownDelayP99Ms() };
}

function row(size: string, load: string, { result, idleLoopDelayP99Ms, ownDelayP99Ms }: Measured): string {
  const { response, health, valid } = result;
  const cells = [
    size,
    load,
    (response.count / seconds).toFixed(0),
    (100 * health.cpuShare).toFixed(0),
    health.loopDelayP99Ms.toFixed(2),
    idleLoopDelayP99Ms.toFixed(2),
    ownDelayP99Ms.toFixed(2),
    health.latenessP99Ms.toFixed(2),
    response.p50Ms.toFixed(2),
    response.p99Ms.toFixed(2),
    valid ? "yes" : "no",
    loadavg()[0]!.toFixed(1),
  ];
  return `| ${cells.join(" | ")} |\n`;
}

async function measure(worker: OneWorker, name: keyof typeof sizes): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const flat = await measured(worker, { ...sizes[name], ...flatOut(32, seconds) });
    process.stdout.write(row(name, "flat out", flat));
    const capacityPerS = flat.result.response.count / seconds;
    for (const share of shares) {
      const ratePerS = Math.round(share * capacityPerS);
      const result = await measured(worker, {
        ...sizes[name],
        ...{ shape: { kind: "poisson", ratePerS }, maxInFlight: Math.max(1000, ratePerS), seed: round },
      });
      process.stdout.write(row(name, `${100 * share} % of ${capacityPerS.toFixed(0)}/s`, result));
    }
  }
}

benchOneWorker(async (worker) => {
  const head =
    "requests|load|answered/s|CPU %|loop delay p99 ms|of an idle process|by own CPU|lateness p99 ms|p50 ms|p99 ms|valid|load average".split(
      "|",
    );
  process.stdout.write(`| ${head.join(" | ")} |\n| ${head.map(() => "---").join(" | ")} |\n`);
  await measure(worker, "small");
  await measure(worker, "image");
});
