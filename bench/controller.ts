/**
 * CPU of the load controller while it merges the reports of many workers, once a second each: the controller is a process of its own, the
 * workers are simulated here. Every report has the histograms of `requests` requests with response times around 30 ms.
 * Measured in the last 10 s: with a stop rule, when its window is full.
 * Run: npx tsx bench/controller.ts [workers, default 1000] [seconds, default 15] [requests a report, default 20] [window of a stop rule that
 * always holds, seconds, default 0: none]
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { RandomStream } from "../loadgen/random";
import { Tally, type TallyMessage } from "../loadgen/tally";
import { FakeWorker } from "../test/loadgen/support/fake-worker";
import { loadSpec } from "../test/loadgen/support/spec";

const [count = 1000, seconds = 15, requests = 20, windowS = 0] = process.argv.slice(2).map(Number);
const token = "bench";
/** Clock ticks a second of /proc (USER_HZ). */
const TICKS_PER_S = 100;

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S;
}

function report(random: RandomStream, interval: number): TallyMessage {
  const tally = new Tally();
  for (let i = 0; i < requests; i++) {
    const responseUs = 20_000 + 20_000 * random.exponential();
    tally.sent(100 * random.exponential(), true);
    const ending = responseUs <= 100_000 ? "ok" : "late";
    tally.ended({ interval, ending, responseUs, serviceUs: responseUs, address: "a:1", error: undefined });
  }
  return tally.toMessage();
}

async function main(): Promise<void> {
  const child = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      join(__dirname, "../loadgen/controller-main.ts"),
      "--any-target",
      "--port",
      "0",
      "--http-port",
      "0",
    ],
    { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, LOADGEN_TOKEN: token } },
  );
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout }).once("line", resolve),
  );
  const { port, httpPort } = JSON.parse(line) as { port: number; httpPort: number };
  const api = `http://127.0.0.1:${httpPort}`;
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const random = new RandomStream(1);
  const workers = Array.from({ length: count }, (_, i) => new FakeWorker(port, token, `w${i}`));
  const health = {
    latenessP99Ms: 0.5,
    loopDelayP99Ms: 1,
    cpuShare: 0.2,
    wireMbPerS: 12,
    rssMb: 90,
    ratePerS: 20,
    busyWaitShare: 0,
    inFlight: 2,
  };
  for (const worker of workers) {
    worker.register();
    worker.onStart = (runId) => {
      let sequence = 0;
      const offsetMs = random.uniform() * 1000;
      setTimeout(() => {
        const timer = setInterval(() => {
          worker.delta(runId, sequence + 1, report(random, sequence), { ...health, runId });
          if (++sequence < seconds) return;
          clearInterval(timer);
          worker.done(runId, sequence, sequence * requests);
        }, 1000);
      }, offsetMs);
    };
  }
  const beats = setInterval(() => {
    for (const worker of workers) worker.say({ body: "heartbeat", heartbeat: { ...health, runId: "" } });
  }, 2000);
  for (;;) {
    const { workers: registered } = (await (await fetch(`${api}/healthz`)).json()) as { workers: number };
    if (registered === count) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  clearInterval(beats);
  const spec = loadSpec({
    id: "bench",
    addresses: ["a:1"],
    imageFolder: "/images",
    maxInFlight: 10 * count,
    measureS: seconds,
    ...(windowS > 0 ? { stopWhen: { quantile: 0.95, boundMs: 10_000, windowS, minSamples: 200 } } : {}),
  });
  await fetch(`${api}/measurements/bench`, { method: "PUT", headers, body: JSON.stringify(spec) });
  await new Promise((resolve) => setTimeout(resolve, Math.max(2000, 1000 * (seconds - 11))));
  const before = cpuSeconds(child.pid!);
  const fromMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, Math.min(seconds - 3, 10) * 1000));
  const share = (cpuSeconds(child.pid!) - before) / ((performance.now() - fromMs) / 1000);
  process.stdout.write(
    `${count} workers at 1 report/s of ${requests} requests${windowS > 0 ? `, stop rule over ${windowS} s` : ""}: ${(100 * share).toFixed(1)} % of a core\n`,
  );
  for (const worker of workers) worker.close();
  child.kill("SIGTERM");
}

void main().then(() => process.exit(0));
