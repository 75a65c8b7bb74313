/** The load generator's own health: event-loop delay, CPU and bytes sent over a span of wall time. */
import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";
import type { WindowHealth } from "./protocol";
import { busyWaitedMs } from "./wake-timer";

/** The monitor's timer, milliseconds. Its histogram holds the time between two firings, so this much is no delay. */
const RESOLUTION_MS = 5;

/** Measures from its creation, or from the last `restart`; of the event-loop delay, from the monitor's first firing after that. */
export class HealthMonitor {
  private readonly loopDelay: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private cpuAtStart = process.cpuUsage();
  private busyWaitedAtStartMs = busyWaitedMs();
  private sinceMs = performance.now();
  private bytesAtStart: number;

  /** @param bytesSent counts all bytes ever sent */
  constructor(private readonly bytesSent: () => number) {
    this.bytesAtStart = bytesSent();
    this.loopDelay.enable();
  }

  restart(): void {
    this.loopDelay.reset();
    this.cpuAtStart = process.cpuUsage();
    this.busyWaitedAtStartMs = busyWaitedMs();
    this.sinceMs = performance.now();
    this.bytesAtStart = this.bytesSent();
  }

  /** Health since the start. Busy waiting is a share of its own. */
  read(): Omit<WindowHealth, "latenessP50Ms" | "busyWaitMs"> {
    const { user, system } = process.cpuUsage(this.cpuAtStart);
    const busyMs = busyWaitedMs() - this.busyWaitedAtStartMs;
    const elapsedMs = Math.max(1, performance.now() - this.sinceMs);
    return {
      loopDelayP99Ms: Math.max(0, this.loopDelay.percentile(99) / 1e6 - RESOLUTION_MS),
      cpuShare: Math.max(0, (user + system) / 1000 - busyMs) / elapsedMs,
      busyWaitShare: busyMs / elapsedMs,
      wireMbPerS: (this.bytesSent() - this.bytesAtStart) / 1000 / elapsedMs,
    };
  }

  stop(): void {
    this.loopDelay.disable();
  }
}
