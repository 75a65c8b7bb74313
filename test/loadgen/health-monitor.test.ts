import { expect, it } from "vitest";
import { HealthMonitor } from "../../loadgen/health-monitor";
import { MOST_LOOP_DELAY_SHARE } from "../../loadgen/merge-result";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it("a blocked event loop shows as such, far over what a trial may have, and is forgotten after a restart (grpc-node#2829)", async () => {
  let bytes = 0;
  const monitor = new HealthMonitor(() => bytes);
  try {
    monitor.restart();
    await pause(50);
    bytes += 2_000_000;
    const cpuBefore = process.cpuUsage();
    const untilMs = performance.now() + 500;
    while (performance.now() < untilMs);
    const { user, system } = process.cpuUsage(cpuBefore);
    await pause(50);
    const { loopDelayP99Ms, cpuShare, wireMbPerS } = monitor.read();
    expect(loopDelayP99Ms).toBeGreaterThan(400);
    // A bound of 100 ms allows 10 ms.
    expect(loopDelayP99Ms).toBeGreaterThan(MOST_LOOP_DELAY_SHARE * 100);
    expect(cpuShare).toBeGreaterThan(0);
    expect(cpuShare).toBeLessThan(((user + system) / 1000 + 300) / 500);
    expect(wireMbPerS).toBeGreaterThan(0);
    expect(wireMbPerS).toBeLessThanOrEqual(4);
    monitor.restart();
    await pause(100);
    expect(monitor.read().loopDelayP99Ms).toBeLessThan(400);
    expect(monitor.read().wireMbPerS).toBe(0);
  } finally {
    monitor.stop();
  }
});
