import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { finiteSourceWaitMs } from "../../../tuning/identify/finite-source";

describe("waiting for one server that a few customers share", () => {
  it("is that of the textbook: two customers with own times as long as the service", () => {
    // p0 = 1 / (1 + 2 + 2): busy 4/5; cycle 2 / 0.8 = 2.5 services, of which one is the own time and one the service.
    expect(finiteSourceWaitMs(2, 10, 0.8)).toBeCloseTo(5, 6);
  });

  it("is nothing for one customer, or a server that does nothing", () => {
    expect(finiteSourceWaitMs(1, 10, 0.9)).toBe(0);
    expect(finiteSourceWaitMs(4, 10, 0)).toBe(0);
    expect(finiteSourceWaitMs(4, 0, 0.5)).toBe(0);
  });

  it("grows with utilisation, and is never longer than the service of all others", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 2, max: 16 }),
        fc.double({ min: 0.01, max: 0.9, noNaN: true }),
        fc.double({ min: 0.01, max: 0.09, noNaN: true }),
        (customers, busy, more) => {
          const [less, wait] = [busy, busy + more].map((share) =>
            finiteSourceWaitMs(customers, 1, share),
          ) as [number, number];
          expect(wait).toBeGreaterThanOrEqual(less);
          expect(wait).toBeLessThanOrEqual(customers - 1);
        },
      ),
    );
  });
});
