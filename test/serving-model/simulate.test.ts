import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArrivalSource, type SimulatedShape } from "../../serving-model/arrival-source";
import { percentileMs } from "../../serving-model/latency-bins";
import { NodeModel } from "../../serving-model/node-model";
import { simulate, type SimulatedLoad, type SimulatedServer } from "../../serving-model/simulate";

const server = (partial: Partial<SimulatedServer> = {}): SimulatedServer => ({
  maxBatchSize: 16,
  preferredBatchSizes: [16],
  queueDelayUs: 20_000,
  dynamicBatching: true,
  instanceCount: 2,
  law: { hostMsPerImage: 0.55, gpuMsPerBatch: 3.5, gpuMsPerImage: 0.33, ingressRequestsPerS: 2300 },
  ...partial,
});

interface Reference {
  readonly latenciesMs: number[];
  readonly batches: number[];
  readonly gpuBusyUs: number;
}

/** The same load through NodeModel, one event at a time. */
function reference(settings: SimulatedServer, load: SimulatedLoad): Reference {
  const source = new ArrivalSource(load.shape, load.seed, (load.warmupS + load.measureS) * 1e6);
  const latenciesMs: number[] = [];
  const batches: number[] = [];
  let answers: { atUs: number; count: number }[] = [];
  const node = new NodeModel<number>(
    { ...settings, payloadBytes: 1 },
    {
      onExecuted: ({ items, gpuStartUs: _start, endUs, images }) => {
        batches.push(images);
        answers.push({ atUs: endUs, count: images });
        for (const plannedUs of items)
          if (plannedUs >= load.warmupS * 1e6) latenciesMs.push((endUs - plannedUs) / 1000);
      },
      onRejected: () => {
        throw new Error("nothing is rejected here");
      },
    },
  );
  for (;;) {
    const atUs = Math.min(source.nextUs, node.nextEventUs());
    if (atUs === Infinity) return { latenciesMs, batches, gpuBusyUs: node.totals(1e15).gpuBusyUs };
    node.advance(atUs);
    if (source.closed) for (const { atUs: endUs, count } of answers) source.answered(endUs, count);
    answers = [];
    while (source.nextUs <= atUs) {
      const plannedUs = source.nextUs;
      source.advance();
      node.arrive(plannedUs, 1, 1, plannedUs);
    }
  }
}

const sum = (values: Iterable<number>): number => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

describe("the fast simulation against the node model", () => {
  const shapes = fc.oneof(
    fc.record({ kind: fc.constant("poisson" as const), ratePerS: fc.integer({ min: 20, max: 3000 }) }),
    fc.record({
      kind: fc.constant("users" as const),
      users: fc.integer({ min: 1, max: 400 }),
      spawnPerS: fc.constant(297.3),
      thinkMinS: fc.constantFrom(0, 0.2),
      thinkMaxS: fc.constantFrom(0.21, 0.3),
    }),
  );
  const servers = fc.record({
    maxBatchSize: fc.constantFrom(1, 4, 13, 64),
    preferredBatchSizes: fc.constantFrom([], [1], [4, 9]),
    queueDelayUs: fc.constantFrom(0, 7001, 20_011),
    dynamicBatching: fc.boolean(),
    instanceCount: fc.integer({ min: 1, max: 5 }),
    law: fc.record({
      hostMsPerImage: fc.constantFrom(0, 0.557, 3.1),
      gpuMsPerBatch: fc.constantFrom(0, 1.0371, 4.11),
      gpuMsPerImage: fc.constantFrom(0, 0.2713, 2.77),
      ingressRequestsPerS: fc.constantFrom(Infinity, 2317),
    }),
  });

  it("gives the same latencies, batches and GPU time", () => {
    fc.assert(
      fc.property(
        servers,
        shapes,
        fc.integer({ min: 1, max: 1_000_000 }),
        (partial, shape: SimulatedShape, seed) => {
          const preferredBatchSizes = partial.preferredBatchSizes.filter(
            (size) => size <= partial.maxBatchSize,
          );
          const settings = { ...partial, preferredBatchSizes };
          // A server with no service time at all answers a user without think time infinitely often.
          if (shape.kind === "users" && shape.thinkMinS === 0 && settings.law.hostMsPerImage === 0) return;
          const load = { shape, seed, warmupS: 0.3, measureS: 0.7, sloBoundMs: 60, intervalS: 0.1 };
          const expected = reference(settings, load);
          const result = simulate(settings, load);
          expect(result.planned).toBe(expected.latenciesMs.length);
          expect(result.late).toBe(expected.latenciesMs.filter((ms) => ms > 60).length);
          expect(sum(result.intervals.responseSumMs)).toBeCloseTo(sum(expected.latenciesMs), 3);
          expect(sum(result.intervals.planned)).toBe(result.planned);
          expect(sum(result.intervals.ok) + sum(result.intervals.late)).toBe(result.planned);
        },
      ),
      { numRuns: 150 },
    );
  });
});

describe("figures of the window", () => {
  it("by hand: one request at a time, no queue", () => {
    const settings = server({
      instanceCount: 1,
      law: { hostMsPerImage: 1, gpuMsPerBatch: 2, gpuMsPerImage: 3, ingressRequestsPerS: 1000 },
    });
    const load = {
      shape: { kind: "constant", ratePerS: 10 } as const,
      seed: 1,
      warmupS: 1,
      measureS: 2,
      sloBoundMs: 26.9,
      intervalS: 1,
    };
    const result = simulate(settings, load);
    // 1 ms link, 20 ms queue delay, 1 ms host phase, 5 ms GPU phase.
    expect(result).toMatchObject({
      planned: 20,
      late: 20,
      missShare: 1,
      executions: 20,
      meanBatch: 1,
      throughputPerS: 10,
    });
    expect(result.meanResponseMs).toBeCloseTo(27, 9);
    for (const [ms, expected] of [
      [result.queueMs, 20],
      [result.hostMs, 1],
      [result.gpuWaitMs, 0],
      [result.gpuMs, 5],
    ] as const) {
      expect(ms).toBeCloseTo(expected, 9);
    }
    expect(result.gpuBusy).toBeCloseTo(0.05, 9);
    expect([...result.intervals.planned]).toEqual([10, 10]);
    expect(simulate(settings, { ...load, sloBoundMs: 27.1 }).late).toBe(0);
    expect(percentileMs(result.responseCounts, 0.95)).toBeCloseTo(27, 0);
  });

  it("counts what is in flight at the end of every interval", () => {
    const slow = server({
      maxBatchSize: 1,
      preferredBatchSizes: [],
      instanceCount: 1,
      law: { hostMsPerImage: 0, gpuMsPerBatch: 100, gpuMsPerImage: 0, ingressRequestsPerS: Infinity },
    });
    const result = simulate(slow, {
      shape: { kind: "constant", ratePerS: 20 },
      seed: 1,
      warmupS: 0,
      measureS: 3,
      sloBoundMs: 100,
      intervalS: 1,
    });
    expect([...result.intervals.inFlight]).toEqual([11, 21, 31]);
  });

  it("sheds what is over the cap and counts it as late", () => {
    const load = {
      shape: { kind: "poisson", ratePerS: 3000 } as const,
      seed: 7,
      warmupS: 1,
      measureS: 3,
      sloBoundMs: 100,
      intervalS: 1,
    };
    const capped = simulate(server(), { ...load, maxInFlight: 400 });
    const shed = sum(capped.intervals.shed);
    expect(shed).toBeGreaterThan(0);
    for (const inFlight of capped.intervals.inFlight) expect(inFlight).toBeLessThanOrEqual(400);
    expect(capped.planned - shed).toBeCloseTo(capped.throughputPerS * 3, -2);
    expect(Math.max(...simulate(server(), load).intervals.inFlight)).toBeGreaterThan(1000);
  });

  it("is the same for the same seed, and another one for another", () => {
    const load = {
      shape: { kind: "poisson", ratePerS: 900 } as const,
      warmupS: 1,
      measureS: 5,
      sloBoundMs: 100,
    };
    expect(simulate(server(), { ...load, seed: 3 })).toEqual(simulate(server(), { ...load, seed: 3 }));
    expect(simulate(server(), { ...load, seed: 3 }).planned).not.toBe(
      simulate(server(), { ...load, seed: 4 }).planned,
    );
  });

  it("names what is wrong with a load", () => {
    const load = {
      shape: { kind: "poisson", ratePerS: 10 } as const,
      seed: 1,
      warmupS: 1,
      measureS: 1,
      sloBoundMs: 100,
    };
    expect(() => simulate(server(), { ...load, measureS: 0 })).toThrow(/measureS is 0/);
    expect(() => simulate(server(), { ...load, shape: { kind: "poisson", ratePerS: 0 } })).toThrow(
      /ratePerS is 0/,
    );
    expect(() => simulate(server({ instanceCount: 0 }), load)).toThrow(/instanceCount is 0/);
    expect(() =>
      simulate(server(), {
        ...load,
        shape: { kind: "users", users: 0, spawnPerS: 1, thinkMinS: 0, thinkMaxS: 1 },
      }),
    ).toThrow(/users is 0/);
  });
});
