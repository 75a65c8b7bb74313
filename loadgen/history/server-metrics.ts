/** What the servers under test say in their /metrics while a load runs: queue, batch size, GPU. Names: kserve/triton-metrics.ts. */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { tritonMetrics } from "../../kserve/triton-metrics";
import type { ServerReading } from "./load-second";

const READ_EVERY_MS = 1000;
const TIMEOUT_MS = 2000;

/** Sums over all replicas at one moment. */
interface Totals {
  readonly atMs: number;
  readonly images: number;
  readonly batches: number;
  readonly requests: number;
  readonly queueUs: number;
  /** Busy shares of all GPUs. */
  readonly busy: readonly number[];
}

export class ServerMetrics {
  private timer: NodeJS.Timeout | undefined;
  private before: Totals | undefined;
  private current: ServerReading | null = null;

  private replicas: readonly string[] = [];

  /** @param urls of /metrics; a name with several addresses stands for all of them; none: nothing is ever read */
  constructor(private readonly urls: readonly string[]) {}

  /** The newest reading; null when there is none. */
  reading(): ServerReading | null {
    return this.current;
  }

  start(): void {
    this.stop();
    if (this.urls.length === 0) return;
    this.timer = setInterval(() => void this.read(), READ_EVERY_MS);
    void Promise.all(this.urls.map(replicasOf)).then((replicas) => {
      this.replicas = replicas.flat();
      return this.read();
    });
  }

  stop(): void {
    clearInterval(this.timer);
    this.before = undefined;
    this.current = null;
  }

  private async read(): Promise<void> {
    const { replicas } = this;
    if (replicas.length === 0) return;
    const texts = await Promise.all(replicas.map(fetchText));
    const answers = texts.filter((text) => text !== null);
    if (answers.length < replicas.length) {
      this.before = undefined;
      this.current = null;
      return;
    }
    const totals = totalsOf(answers, performance.now());
    if (this.before !== undefined) this.current = readingBetween(this.before, totals);
    this.before = totals;
  }
}

/** From two moments' counters; a server that was restarted counts from zero again and gives nothing. */
export function readingBetween(before: Totals, after: Totals): ServerReading | null {
  const batches = after.batches - before.batches;
  const images = after.images - before.images;
  const requests = after.requests - before.requests;
  const queueUs = after.queueUs - before.queueUs;
  if (batches < 0 || images < 0 || requests < 0 || queueUs < 0) return null;
  const rounded = (value: number): number => Math.round(value * 1000) / 1000;
  return {
    batchesPerS: rounded((batches * 1000) / (after.atMs - before.atMs)),
    batchSize: batches === 0 ? null : rounded(images / batches),
    queueMs: requests === 0 ? null : rounded(queueUs / requests / 1000),
    gpuBusy:
      after.busy.length === 0
        ? null
        : rounded(after.busy.reduce((sum, busy) => sum + busy, 0) / after.busy.length),
  };
}

/** Sums of the counters over all models of all servers. */
export function totalsOf(expositions: readonly string[], atMs: number): Totals {
  const values = (name: string): number[] =>
    expositions.flatMap((text) =>
      [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))].map(([, value]) =>
        Number(value),
      ),
    );
  const sum = (name: string): number => values(name).reduce((total, value) => total + value, 0);
  return {
    atMs,
    images: sum(tritonMetrics.inferenceCount),
    batches: sum(tritonMetrics.executionCount),
    requests: sum(tritonMetrics.requestSuccess),
    queueUs: sum(tritonMetrics.queueDurationUs),
    busy: values(tritonMetrics.gpuUtilization),
  };
}

/** The same URL for every address that its host has now. */
async function replicasOf(text: string): Promise<string[]> {
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host)) return [text];
  try {
    const addresses = await lookup(host, { all: true });
    return addresses.map(({ address, family }) => {
      const replica = new URL(text);
      replica.hostname = family === 6 ? `[${address}]` : address;
      return replica.href;
    });
  } catch {
    return [text]; // not known: the reading will fail and be shown as none
  }
}

async function fetchText(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    return response.ok ? await response.text() : null;
  } catch {
    return null; // shown as "no reading"; the load goes on
  }
}
