import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SloCounter, type Ending } from "../../loadgen/slo-counter";
import { Tally, type EndedRequest } from "../../loadgen/tally";

const time = fc.nat(2_000_000);
const event = fc.oneof(
  fc.record({ kind: fc.constant("sent" as const), latenessUs: time, onTime: fc.boolean() }),
  fc.record({ kind: fc.constant("shed" as const), interval: fc.nat(9), onTime: fc.boolean() }),
  fc.record({
    kind: fc.constant("ended" as const),
    interval: fc.nat(9),
    ending: fc.constantFrom<Exclude<Ending, "shed">>("ok", "late", "failed"),
    responseUs: time,
    serviceUs: time,
    address: fc.constantFrom("a:1", "b:1"),
  }),
);
type Event = typeof event extends fc.Arbitrary<infer T> ? T : never;

function feed(tally: Tally, events: readonly Event[]): Tally {
  for (const one of events) {
    if (one.kind === "sent") tally.sent(one.latenessUs, one.onTime);
    else if (one.kind === "shed") tally.shed(one.interval, one.onTime);
    else {
      const error = one.ending === "failed" ? { kind: "UNAVAILABLE", message: "gone" } : undefined;
      tally.ended({ ...one, error } satisfies EndedRequest & { kind: string });
    }
  }
  return tally;
}

describe("Tally", () => {
  it("deltas of any cut add up to the whole", () => {
    fc.assert(
      fc.property(fc.array(fc.array(event, { maxLength: 30 }), { maxLength: 6 }), (parts) => {
        const whole = feed(new Tally(), parts.flat());
        const merged = new Tally();
        const pending = new Tally();
        for (const part of parts) {
          feed(pending, part);
          merged.mergeMessage(structuredClone(pending.toMessage()));
          pending.clear();
        }
        expect(merged.toMessage()).toEqual(whole.toMessage());
        expect(merged.slo.intervals(10)).toEqual(whole.slo.intervals(10));
      }),
    );
  });

  it("planned = ok + late + failed, and answered = histogram counts, in total and per interval", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 100 }), (events) => {
        const tally = feed(new Tally(), events);
        const total = tally.slo.total();
        const intervals = tally.slo.intervals(10);
        expect(total.planned).toBe(total.ok + total.late + total.failed);
        expect(total.planned).toBe(events.filter(({ kind }) => kind !== "sent").length);
        expect(intervals.reduce((sum, { planned }) => sum + planned, 0)).toBe(total.planned);
        expect(intervals.reduce((sum, { answered }) => sum + answered, 0)).toBe(tally.response.count);
        expect(total.ok + total.late - total.shed).toBe(tally.service.count);
        expect(Object.values(tally.perAddress()).reduce((sum, n) => sum + n, 0)).toBe(tally.service.count);
        expect(Object.values(tally.errors()).reduce((sum, n) => sum + n, 0)).toBe(total.failed);
      }),
    );
  });

  it("keeps the first message of a class of errors", () => {
    const tally = new Tally();
    const failed = { interval: 0, ending: "failed", responseUs: 1, serviceUs: 1, address: "a:1" } as const;
    tally.ended({ ...failed, error: { kind: "INTERNAL", message: "first" } });
    tally.ended({ ...failed, error: { kind: "INTERNAL", message: "second" } });
    expect(tally.errorMessages()).toEqual({ INTERNAL: "first" });
  });
});

describe("SloCounter", () => {
  it("lists empty intervals too and adds in-flight samples of workers", () => {
    const counter = new SloCounter();
    counter.add(2, "ok", 1500);
    counter.addInFlight(2, 3);
    counter.merge([{ index: 2, ok: 0, late: 1, failed: 0, shed: 1, responseSumUs: 0, inFlight: 4 }]);
    expect(counter.intervals(3)).toEqual([
      {
        index: 0,
        planned: 0,
        ok: 0,
        late: 0,
        failed: 0,
        shed: 0,
        responseSumMs: 0,
        answered: 0,
        inFlight: 0,
      },
      {
        index: 1,
        planned: 0,
        ok: 0,
        late: 0,
        failed: 0,
        shed: 0,
        responseSumMs: 0,
        answered: 0,
        inFlight: 0,
      },
      {
        index: 2,
        planned: 2,
        ok: 1,
        late: 1,
        failed: 0,
        shed: 1,
        responseSumMs: 1.5,
        answered: 1,
        inFlight: 7,
      },
    ]);
    expect(() => counter.add(-1, "ok")).toThrow(/index must be an integer >= 0/);
  });
});
