import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { OpenRequests } from "../../loadgen/transport-lean/open-requests";
import { PendingRequest } from "../../loadgen/transport-lean/pending-request";
import type { InferOutcome } from "../../loadgen/transport";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Opens requests with these deadlines, all at once; outcomes are in the order in which they came. */
function opened(deadlinesMs: readonly number[]): {
  open: OpenRequests;
  requests: PendingRequest[];
  outcomes: { index: number; atMs: number; outcome: InferOutcome }[];
} {
  const open = new OpenRequests();
  const outcomes: { index: number; atMs: number; outcome: InferOutcome }[] = [];
  const startMs = performance.now();
  const requests = deadlinesMs.map(
    (deadlineMs, index) =>
      new PendingRequest(
        0,
        deadlineMs,
        (outcome) => outcomes.push({ index, atMs: performance.now() - startMs, outcome }),
        open,
      ),
  );
  return { open, requests, outcomes };
}

const anyDeadlines = fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 });

describe("OpenRequests", () => {
  it("every request ends at its own deadline, the earliest first", () => {
    fc.assert(
      fc.property(anyDeadlines, (deadlinesMs) => {
        const { open, outcomes } = opened(deadlinesMs);
        expect(open.size).toBe(deadlinesMs.length);
        vi.advanceTimersByTime(501);
        expect(open.size).toBe(0);
        const inOrder = deadlinesMs
          .map((deadlineMs, index) => ({ deadlineMs, index }))
          .sort((one, other) => one.deadlineMs - other.deadlineMs || one.index - other.index);
        expect(outcomes.map(({ index }) => index)).toEqual(inOrder.map(({ index }) => index));
        for (const { index, atMs, outcome } of outcomes) {
          expect(atMs).toBeGreaterThanOrEqual(deadlinesMs[index]!);
          expect(atMs).toBeLessThanOrEqual(deadlinesMs[index]! + 1);
          expect(outcome).toMatchObject({ status: 4, message: `no answer within ${deadlinesMs[index]} ms` });
        }
      }),
    );
  });

  it("a request that has ended is out of it, whatever its place, and its deadline means nothing", () => {
    fc.assert(
      fc.property(anyDeadlines, fc.infiniteStream(fc.nat()), (deadlinesMs, picks) => {
        const { open, requests, outcomes } = opened(deadlinesMs);
        const left = requests.map((request, index) => ({ request, index }));
        const ended = new Set<number>();
        for (const pick of picks) {
          if (left.length <= deadlinesMs.length / 2) break;
          const [{ request, index } = left[0]!] = left.splice(pick % left.length, 1);
          request.finish({ status: 13, message: "ended" });
          ended.add(index);
          expect(open.size).toBe(left.length);
        }
        vi.advanceTimersByTime(501);
        expect(outcomes.map(({ index }) => index).sort((one, other) => one - other)).toEqual(
          deadlinesMs.map((_, index) => index),
        );
        for (const { index, outcome } of outcomes) expect(outcome.status).toBe(ended.has(index) ? 13 : 4);
      }),
    );
  });

  it("one that is opened later may be due earlier", () => {
    const { open, outcomes } = opened([1000]);
    vi.advanceTimersByTime(10);
    const early: InferOutcome[] = [];
    new PendingRequest(0, 20, (outcome) => early.push(outcome), open);
    vi.advanceTimersByTime(21);
    expect(early).toHaveLength(1);
    expect(outcomes).toHaveLength(0);
    vi.advanceTimersByTime(970);
    expect(outcomes).toHaveLength(1);
  });

  it("no timer is left when the transport is closed", () => {
    const { open, requests } = opened([1000, 2000]);
    for (const request of requests) request.finish({ status: 1, message: "closed" });
    open.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("a deadline beyond what Node's timers take does not pass at once", () => {
    const { outcomes } = opened([2 ** 31 + 5000]);
    vi.advanceTimersByTime(60_000);
    expect(outcomes).toHaveLength(0);
  });
});
