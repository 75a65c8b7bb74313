import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { asObservation, readObservations } from "../../../examples/gpu/observations";
import { activeOf, balanceOf, crowdingOf, slowdown } from "../../../tuning/explore/crowding";

const evidence = "docs/evidence/h200/grids";
const milliseconds = (max: number) => fc.double({ min: 0.1, max, noNaN: true });
const busyServer = fc.record({
  instanceCount: fc.integer({ min: 1, max: 8 }),
  hostAloneMs: milliseconds(50),
  gpuMs: milliseconds(20),
  crowding: fc.double({ min: 0, max: 0.6, noNaN: true }),
});

describe("where host and GPU balance", () => {
  it("passes no more than GPU and instances can, and every instance is somewhere", () => {
    fc.assert(
      fc.property(busyServer, (server) => {
        const { hostMs, active, gpuBusy } = balanceOf(server);
        expect(gpuBusy).toBeLessThanOrEqual(1 + 1e-9);
        expect(active + gpuBusy).toBeLessThanOrEqual(server.instanceCount * (1 + 1e-6));
        expect(hostMs).toBeGreaterThanOrEqual(server.hostAloneMs * (1 - 1e-9));
      }),
    );
  });

  it("is host + GPU with one instance", () => {
    const { hostMs, active, gpuBusy } = balanceOf({
      instanceCount: 1,
      hostAloneMs: 3,
      gpuMs: 1,
      crowding: 0.5,
    });
    expect(hostMs).toBeCloseTo(3, 6);
    expect(active).toBeCloseTo(0.75, 6);
    expect(gpuBusy).toBeCloseTo(0.25, 6);
  });

  it("finds again the host phase that a measured balance was made of", () => {
    fc.assert(
      fc.property(busyServer, (server) => {
        const { hostMs, active, gpuBusy } = balanceOf(server);
        fc.pre(gpuBusy < 0.9);
        const measured = activeOf({
          instanceCount: server.instanceCount,
          batch: 8,
          hostMs,
          gpuMs: server.gpuMs,
        });
        expect(measured.seen).toBe(true);
        expect(measured.active / active).toBeCloseTo(1, 3);
        expect(hostMs / slowdown(server.crowding, measured.active) / server.hostAloneMs).toBeCloseTo(1, 2);
      }),
    );
  });

  it("hides the host phase where the GPU works all the time, unless there is one instance", () => {
    expect(activeOf({ instanceCount: 8, batch: 64, hostMs: 4, gpuMs: 4 }).seen).toBe(false);
    expect(activeOf({ instanceCount: 1, batch: 64, hostMs: 0.1, gpuMs: 4 }).seen).toBe(true);
  });
});

describe("crowding", () => {
  const measuredWith = (crowding: number, instanceCount: number) => {
    const { hostMs } = balanceOf({ instanceCount, hostAloneMs: 12.8, gpuMs: 2, crowding });
    return { instanceCount, batch: 64, hostMs, gpuMs: 2 };
  };

  it("is seen from two numbers of instances", () => {
    for (const crowding of [0, 0.1, 0.3, 0.5]) {
      const { likely, least } = crowdingOf([measuredWith(crowding, 1), measuredWith(crowding, 4)]);
      // The usual share pulls a little.
      expect(Math.abs(likely - crowding)).toBeLessThan(0.1);
      expect(least).toBeLessThanOrEqual(likely);
    }
  });

  it("is open from one", () => {
    const { likely, least } = crowdingOf([measuredWith(0.3, 1)]);
    expect(likely).toBe(crowdingOf([]).likely);
    expect(least).toBeLessThan(likely - 0.1);
  });

  it("was about the usual one on the recorded server, from any two of its numbers of instances", () => {
    // Full batches of 64 with all instances at work; GPU phases by their gauges.
    const full = readObservations(evidence)
      .map(asObservation)
      .filter(
        ({ variant, meanBatch, measureS }) => variant.maxBatchSize === 64 && meanBatch! > 60 && measureS > 2,
      )
      .filter(({ gpuBusy }) => gpuBusy! < 0.85)
      .map(({ variant: { instanceCount }, meanBatch, throughputPerS, gpuBusy }) => {
        const perMs = throughputPerS / meanBatch! / 1000;
        const gpuMs = gpuBusy! / perMs;
        return { instanceCount, batch: meanBatch!, hostMs: instanceCount / perMs - gpuMs, gpuMs };
      });
    const counts = [...new Set(full.map(({ instanceCount }) => instanceCount))];
    expect(counts.length).toBeGreaterThanOrEqual(3);
    const { likely } = crowdingOf(full);
    expect(likely).toBeGreaterThan(0.17);
    expect(likely).toBeLessThan(0.42);
  });
});
