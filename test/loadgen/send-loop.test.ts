import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LoadShape } from "../../loadgen/load-spec";
import { createPlan } from "../../loadgen/schedule";
import {
  MAX_BURST,
  MAX_TURN_MS,
  SendLoop,
  type SendLoopOptions,
  type SentRequest,
} from "../../loadgen/send-loop";
import { VirtualTime } from "./support/virtual-time";

interface Played {
  readonly loop: SendLoop;
  /** Wall times of the real sends, milliseconds from the start. */
  readonly sentMs: number[];
  /** Wall time of the end, milliseconds from the start. */
  readonly endMs: number;
  readonly mostInFlight: number;
}

type Server = (
  nth: number,
  atMs: number,
) => { readonly answerMs: number; readonly error?: SentRequest["error"] };

/** Plays a load in virtual time against a server; `answerMs` of Infinity means an answer that only the deadline ends. */
async function play(
  shape: LoadShape,
  server: Server,
  change: Partial<Omit<SendLoopOptions, "plan" | "time" | "send">> = {},
  prepare: (time: VirtualTime, startMs: number, loop: SendLoop) => void = () => undefined,
): Promise<Played> {
  const time = new VirtualTime();
  const startMs = time.nowMs() + 50;
  const sentMs: number[] = [];
  let inFlight = 0;
  let mostInFlight = 0;
  const send = (deadlineMs: number): Promise<SentRequest> =>
    new Promise((resolve) => {
      const { answerMs, error } = server(sentMs.length, time.nowMs() - startMs);
      sentMs.push(time.nowMs() - startMs);
      mostInFlight = Math.max(mostInFlight, ++inFlight);
      const serviceMs = Math.min(answerMs, deadlineMs);
      const late = serviceMs < answerMs ? { kind: "DEADLINE_EXCEEDED", message: "" } : error;
      time.after(serviceMs, () => {
        inFlight--;
        resolve({ serviceTimeUs: serviceMs * 1000, address: "a:1", error: late });
      });
    });
  const options = {
    warmupS: 1,
    measureS: 4,
    sloBoundMs: 100,
    deadlineMs: 1000,
    maxInFlight: 1e6,
    timeDilation: 1,
  };
  const plan = createPlan(shape, 1, { index: 0, count: 1 });
  const loop = new SendLoop({ ...options, ...change, plan, time, send });
  prepare(time, startMs, loop);
  let endMs = NaN;
  const done = loop.run(startMs).then(() => (endMs = time.nowMs() - startMs));
  await time.play();
  await done;
  return { loop, sentMs, endMs, mostInFlight };
}

const in20ms: Server = () => ({ answerMs: 20 });
const constant = (ratePerS: number): LoadShape => ({ kind: "constant", ratePerS });

describe("open loop", () => {
  it("sends at the planned times, counts the window only, and goes on for one SLO bound behind it", async () => {
    const { loop, sentMs, endMs } = await play(constant(100), in20ms);
    expect(sentMs.slice(0, 500)).toEqual(
      Array.from({ length: 500 }, (_, i) => expect.closeTo(i * 10, 6) as number),
    );
    expect(loop.measured.slo.total()).toEqual({ planned: 400, ok: 400, late: 0, failed: 0, shed: 0 });
    expect(loop.warmup.slo.total().planned).toBe(100);
    expect(loop.measured.onTimeSends).toBe(400);
    expect(loop.measured.slo.intervals(4).map(({ planned }) => planned)).toEqual([100, 100, 100, 100]);
    // the last measured request is answered 10 ms behind the window, while the load still goes on
    expect(endMs).toBeCloseTo(5010, 0);
    expect(sentMs.length).toBeGreaterThan(500);
  });

  it("waits for measured requests up to their deadline, but sends nothing more after one SLO bound", async () => {
    const { loop, sentMs, endMs } = await play(constant(100), () => ({ answerMs: Infinity }));
    expect(loop.measured.slo.total()).toMatchObject({ planned: 400, failed: 400 });
    expect(loop.measured.errors()).toEqual({ DEADLINE_EXCEEDED: 400 });
    expect(Math.max(...sentMs)).toBeLessThan(5100);
    expect(endMs).toBeCloseTo(5990, 0);
  });

  it("splits ok from late at the bound, from the planned send", async () => {
    const { loop } = await play(constant(10), (nth) => ({ answerMs: nth % 2 === 0 ? 100 : 100.002 }));
    expect(loop.measured.slo.total()).toMatchObject({ ok: 20, late: 20 });
  });

  it("never sends before the plan and sends exactly what is planned, whatever stalls", async () => {
    const stall = fc.record({ atMs: fc.nat(5000), forMs: fc.nat(800) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(stall, { maxLength: 5 }),
        fc.integer({ min: 1, max: 700 }),
        async (stalls, ratePerS) => {
          const { loop, sentMs } = await play(constant(ratePerS), in20ms, {}, (time, startMs) => {
            for (const { atMs, forMs } of stalls) time.at(startMs + atMs, () => time.block(forMs));
          });
          sentMs.forEach((at, i) => expect(at).toBeGreaterThanOrEqual((i * 1000) / ratePerS - 1e-6));
          expect(loop.measured.slo.total().planned).toBe(
            Math.ceil(5 * ratePerS - 1e-9) - Math.ceil(ratePerS - 1e-9),
          );
          expect(loop.measured.lateness.count).toBe(loop.measured.slo.total().planned);
        },
      ),
      { numRuns: 30 },
    );
  });

  it.each([
    ["large requests: what takes MAX_TURN_MS", 0.3, Math.ceil(MAX_TURN_MS / 0.3)],
    ["small ones: MAX_BURST", 0, MAX_BURST],
    ["one that takes longer than a turn may: that one", 50, 1],
  ])("a late loop catches up turn by turn, and reads replies in between; %s", async (_, sendMs, perTurn) => {
    const stallMs = 200;
    let clock: VirtualTime | undefined;
    let isStalled = false;
    let turn = 0;
    /** Sends by turn, of the requests that were due when the stall ended. */
    const sends: number[] = [];
    const { loop } = await play(
      constant(1000),
      () => {
        if (isStalled && sends.reduce((sum, count) => sum + count, 0) < stallMs) {
          sends[turn] = (sends[turn] ?? 0) + 1;
          clock!.block(sendMs);
        }
        return { answerMs: 20 };
      },
      { deadlineMs: 60_000 },
      (time, startMs) => {
        clock = time;
        time.at(startMs + 2000, () => {
          time.block(stallMs);
          isStalled = true;
          // Replies that came meanwhile: one is read in every turn of the event loop.
          const read = (): void => {
            if (++turn < 2 * stallMs) time.soon(read);
          };
          time.soon(read);
        });
      },
    );
    expect(loop.measured.slo.total()).toMatchObject({ planned: 4000, shed: 0 });
    expect(sends.reduce((sum, count) => sum + count, 0)).toBe(stallMs);
    expect(sends.find((count) => count > 0)).toBe(perTurn);
    expect(Math.max(...sends.filter((count) => count > 0))).toBe(perTurn);
  });

  it("a stall of 150 ms shows in response times and lateness, not in service times (triton#3113)", async () => {
    const { loop } = await play(constant(10), in20ms, {}, (time, startMs) => {
      for (const atMs of [1290, 2290, 3290, 4290]) time.at(startMs + atMs, () => time.block(150));
    });
    const { response, service, lateness } = loop.measured;
    expect(response.percentileUs(0.95)).toBeGreaterThan(100_000);
    expect(service.percentileUs(0.95)).toBe(service.percentileUs(0.05));
    expect(service.percentileUs(0.95)).toBeCloseTo(20_000, -2);
    expect(lateness.percentileUs(0.95)).toBeGreaterThan(100_000);
    expect(loop.measured.slo.total()).toMatchObject({ planned: 40, late: 4 });
  });

  it("adds no correction for coordinated omission on top: 100 answers of 80 ms stay 100 (scylla-bench#46)", async () => {
    const { loop } = await play(constant(10), () => ({ answerMs: 80 }), { warmupS: 0, measureS: 10 });
    expect(loop.measured.response.count).toBe(100);
    expect(loop.measured.response.percentileUs(0.5)).toBeCloseTo(80_000, -2);
    expect(loop.measured.response.percentileUs(1)).toBeCloseTo(80_000, -2);
  });

  it("sends after the window's end when it is behind, and says so (achieved share)", async () => {
    const { loop } = await play(constant(100), in20ms, {}, (time, startMs) =>
      time.at(startMs + 4495, () => time.block(1000)),
    );
    expect(loop.measured.slo.total().planned).toBe(400);
    expect(loop.measured.onTimeSends).toBe(350);
  });

  it("333/s for 10 s are 3,330 sends (node#26578)", async () => {
    const { loop } = await play(constant(333), in20ms, { warmupS: 0, measureS: 10 });
    expect(loop.measured.slo.total().planned).toBe(3330);
  });
});

describe("in-flight cap (vegeta#344)", () => {
  it("a server that never answers: what is over the cap is shed and counts as late, the memory is bounded", async () => {
    const { loop, mostInFlight, sentMs } = await play(constant(1000), () => ({ answerMs: Infinity }), {
      maxInFlight: 50,
    });
    const total = loop.measured.slo.total();
    expect(mostInFlight).toBe(50);
    expect(total.planned).toBe(4000);
    expect(total.late).toBe(total.shed);
    expect(total.failed + total.shed).toBe(4000);
    expect(total.failed).toBeGreaterThan(0);
    expect(sentMs.length).toBeLessThanOrEqual(50 * 6);
    // shedding is the cap's decision, not a client that cannot keep up
    expect(loop.measured.onTimeSends).toBe(4000);
  });
});

describe("closed loop", () => {
  const users = { kind: "users", users: 50, spawnPerS: 1e6, thinkMinS: 0.8, thinkMaxS: 1.2 } as const;

  it("times a request from the end of its think time and never has more in flight than users", async () => {
    const { loop, mostInFlight } = await play(users, () => ({ answerMs: 300 }), { measureS: 20 });
    expect(mostInFlight).toBeLessThanOrEqual(50);
    // each user cycles in 1.0 s of thinking and 0.3 s of waiting
    expect(Math.abs(loop.measured.slo.total().planned - (50 * 20) / 1.3)).toBeLessThan(25);
    expect(loop.measured.response.percentileUs(0.5)).toBeCloseTo(300_000, -3);
  });

  it("without think time it keeps every user busy", async () => {
    const { loop, mostInFlight } = await play({ ...users, users: 4, thinkMinS: 0, thinkMaxS: 0 }, in20ms);
    expect(mostInFlight).toBe(4);
    expect(loop.measured.slo.total().planned).toBeGreaterThan(790);
    expect(loop.measured.slo.total().planned).toBeLessThanOrEqual(804);
  });

  it("goes on after errors", async () => {
    const error = { kind: "UNAVAILABLE", message: "gone" };
    const { loop } = await play(users, (nth) => ({ answerMs: 5, error: nth % 2 === 0 ? error : undefined }));
    const total = loop.measured.slo.total();
    expect(total.planned).toBeGreaterThan(180);
    expect(Math.abs(total.failed - total.ok)).toBeLessThan(4);
    expect(loop.measured.errors()).toEqual({ UNAVAILABLE: total.failed });
    expect(loop.measured.response.count).toBe(total.ok);
  });
});

describe("time dilation", () => {
  it.each([1, 3.5])("by %d gives the same figures in model time", async (timeDilation) => {
    const server: Server = (nth) => ({ answerMs: (nth % 2 === 0 ? 40 : 140) * timeDilation });
    const { loop, sentMs, endMs } = await play(constant(50), server, { timeDilation }, (time, startMs) =>
      time.at(startMs + 2000 * timeDilation - 5 * timeDilation, () => time.block(15 * timeDilation)),
    );
    expect(loop.measured.slo.total()).toEqual({ planned: 200, ok: 100, late: 100, failed: 0, shed: 0 });
    expect(loop.measured.response.percentileUs(0.4)).toBeCloseTo(40_000, -2);
    expect(loop.measured.service.percentileUs(0.9)).toBeCloseTo(140_000, -3);
    expect(loop.measured.lateness.maxUs).toBeCloseTo(10_000, -1);
    expect(sentMs[60]).toBeCloseTo(1200 * timeDilation, 3);
    expect(endMs / timeDilation).toBeCloseTo(5120, 0);
  });
});

it("stop ends the run at once and counts nothing more", async () => {
  let planned = NaN;
  const { loop, endMs } = await play(constant(100), in20ms, {}, (time, startMs, running) =>
    time.at(startMs + 2500, () => {
      running.stop();
      planned = running.measured.slo.total().planned;
    }),
  );
  expect(planned).toBeGreaterThan(140);
  expect(loop.measured.slo.total().planned).toBe(planned);
  expect(endMs).toBeCloseTo(2500, 0);
});
