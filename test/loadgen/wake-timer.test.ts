import { expect, it } from "vitest";
import { busyWaitedMs, ThreadWakeTimer } from "../../loadgen/wake-timer";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Arms for each of these delays in turn; returns how late each wake-up came, milliseconds. */
async function latenessOf(delaysMs: readonly number[], busyWaitMs = 0): Promise<number[]> {
  const lateness: number[] = [];
  let timer: ThreadWakeTimer | undefined;
  await new Promise<void>((resolve) => {
    let armedMs = 0;
    const arm = (): void => {
      const delayMs = delaysMs[lateness.length];
      if (delayMs === undefined) return resolve();
      armedMs = performance.now() + delayMs;
      timer!.armAt(armedMs);
    };
    timer = new ThreadWakeTimer(() => {
      lateness.push(performance.now() - armedMs);
      arm();
    }, busyWaitMs);
    arm();
  });
  timer!.close();
  return lateness;
}

it("wakes for every arming, never early, and mostly within milliseconds even on a busy machine (node#26578)", async () => {
  const lateness = await latenessOf(Array.from({ length: 300 }, (_, i) => ((i * 37) % 50) / 10));
  expect(lateness).toHaveLength(300);
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
  lateness.sort((one, other) => one - other);
  expect(lateness[150]).toBeLessThan(5);
});

it("that waits awake wakes once for every arming and never early, and its waiting is counted apart", async () => {
  const beforeMs = busyWaitedMs();
  const delaysMs = Array.from({ length: 100 }, (_, i) => ((i * 37) % 50) / 10);
  const lateness = await latenessOf(delaysMs, 2);
  expect(lateness).toHaveLength(100);
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
  const countedMs = busyWaitedMs() - beforeMs;
  expect(countedMs).toBeGreaterThan(0);
  expect(countedMs).toBeLessThanOrEqual(delaysMs.reduce((sum, delayMs) => sum + Math.min(2, delayMs), 0));
});

it("that waits awake follows an earlier or a later arming, reads input meanwhile, and stops waiting after disarm", async () => {
  const { timer, wakes, woken } = awaitable(10);
  timer.armAt(performance.now() + 10);
  timer.armAt(performance.now() + 5);
  let turns = 0;
  const count = (): void => {
    turns++;
    if (wakes() === 0) setImmediate(count);
  };
  count();
  await woken(1);
  expect(turns).toBeGreaterThan(1);
  const laterMs = performance.now() + 40;
  timer.armAt(performance.now() + 8);
  timer.armAt(laterMs);
  await woken(2);
  expect(performance.now()).toBeGreaterThanOrEqual(laterMs);
  timer.armAt(performance.now() + 9);
  timer.disarm();
  await pause(40);
  expect(wakes()).toBe(2);
  timer.close();
});

/** A timer whose wake-ups can be awaited. */
function awaitable(busyWaitMs = 0): {
  timer: ThreadWakeTimer;
  wakes: () => number;
  woken: (count: number) => Promise<void>;
} {
  let wakes = 0;
  const timer = new ThreadWakeTimer(() => wakes++, busyWaitMs);
  const woken = async (count: number): Promise<void> => {
    while (wakes < count) await pause(2);
  };
  return { timer, wakes: () => wakes, woken };
}

it("loses no wake-up when the notification of an arming comes while the helper already sleeps for it", async () => {
  const { timer, woken } = awaitable();
  const { state } = timer as unknown as { state: Int32Array };
  for (let wake = 1; wake <= 3; wake++) {
    timer.armAt(performance.now() + 60);
    await pause(20);
    // as if the process had been interrupted between counting the arming and notifying the helper
    Atomics.notify(state, 0);
    await woken(wake);
  }
  timer.close();
});

it("wakes for a time that is past, for an earlier arming instead of a later one, and not after disarm", async () => {
  const { timer, wakes, woken } = awaitable();
  timer.armAt(performance.now() - 5);
  await woken(1);
  timer.armAt(performance.now() + 60_000);
  timer.armAt(performance.now() + 10);
  await woken(2);
  timer.armAt(performance.now() + 20);
  timer.armAt(performance.now() + 60_000);
  await pause(80);
  timer.armAt(performance.now() + 20);
  timer.disarm();
  await pause(80);
  expect(wakes()).toBe(2);
  timer.close();
});

it("a helper whose clock runs ahead or behind wakes all the same, never early", async () => {
  for (const aheadMs of [15, -15]) {
    const { timer, woken } = awaitable();
    // as if the process had been interrupted between reading its two clocks
    (timer as unknown as { due: Float64Array }).due[1]! -= aheadMs;
    for (let wake = 1; wake <= 3; wake++) {
      const atMs = performance.now() + 25;
      timer.armAt(atMs);
      await woken(wake);
      expect(performance.now()).toBeGreaterThanOrEqual(atMs);
    }
    timer.close();
  }
});
