import { describe, expect, it } from "vitest";
import type { Precision } from "../../../model-repo/variant";
import { excludedOutcome } from "../../../tuning/outcome";
import { answerGoal } from "../../../tuning/results/goal";
import { rank, type Candidate } from "../../../tuning/results/ranking";
import { failedOutcome, outcomes, variant, variants } from "../fixtures/outcomes";

interface Given {
  rate: number;
  halfWidth?: number;
  gpuBusy?: number | null;
  precision?: Precision;
  batch?: number;
  instances?: number;
}

function candidate(name: string, given: Given): Candidate {
  const half = given.halfWidth ?? 10;
  return {
    variant: variant(name, given.precision ?? "int8", given.batch ?? 8, given.instances ?? 1),
    outcome: {
      ...failedOutcome(name, ""),
      sloRate: { estimate: given.rate, low: given.rate - half, high: given.rate + half, level: 0.95 },
      operatingRate: given.rate - 2 * half,
      gpuBusy: given.gpuBusy ?? null,
    },
  };
}

describe("rank", () => {
  it("takes the highest rate when the intervals are apart", () => {
    const ranking = rank([candidate("slow", { rate: 1000 }), candidate("fast", { rate: 1100 })]);
    expect(ranking).toMatchObject({ recommended: "fast", tiedWith: [] });
    expect(ranking.reason).toBe(
      "Highest SLO rate: 10 % above the next best, slow; the intervals do not overlap.",
    );
    expect(rank([candidate("slow", { rate: 250 }), candidate("fast", { rate: 1150 })]).reason).toContain(
      "Highest SLO rate: 4.6 times that of the next best, slow;",
    );
    expect([...ranking.ranks]).toEqual([
      ["fast", 1],
      ["slow", 2],
    ]);
  });

  it.each<[string, Given, string]>([
    [
      "leaves more room on the GPU (75 % busy, not 91 %)",
      { rate: 995, gpuBusy: 0.75, instances: 4 },
      "other",
    ],
    ["needs fewer instances", { rate: 995, instances: 2, gpuBusy: 0.89 }, "other"],
    ["gives up less precision", { rate: 995, precision: "fp16", instances: 3 }, "other"],
    ["needs smaller batches", { rate: 995, batch: 4, instances: 3 }, "other"],
  ])("among ties takes the one that %s", (reason, given) => {
    const best = candidate("best", { rate: 1000, gpuBusy: 0.91, instances: 3, batch: 8 });
    const other = candidate("other", given);
    for (const order of [
      [best, other],
      [other, best],
    ]) {
      const ranking = rank(order);
      expect(ranking).toMatchObject({ recommended: "other", tiedWith: ["best"] });
      expect(ranking.reason).toContain(reason);
      expect(ranking.ranks.get("best")).toBe(1);
      expect(ranking.ranks.get("other")).toBe(1);
    }
  });

  it("does not chain ties: what overlaps only the second is not tied with the first", () => {
    const ranking = rank([
      candidate("a", { rate: 1000 }),
      candidate("b", { rate: 985 }),
      candidate("c", { rate: 970 }),
    ]);
    expect([...ranking.ranks.values()]).toEqual([1, 1, 3]);
    expect(ranking.tiedWith).not.toContain("c");
  });

  it("leaves out what held no rate", () => {
    const failed = { variant: variant("bad", "fp32", 8, 1), outcome: failedOutcome("bad", "") };
    expect(rank([failed])).toMatchObject({ recommended: null });
    expect(rank([failed, candidate("good", { rate: 10, halfWidth: 1 })])).toMatchObject({
      recommended: "good",
      reason: "The only variant that held the SLO at some rate.",
    });
  });

  it("names what was excluded, also when nothing else held the SLO", () => {
    const wrong = {
      variant: variant("wrong", "int8", 8, 1),
      outcome: excludedOutcome("wrong", "wrong is excluded: its answers differ"),
    };
    expect(rank([wrong, candidate("good", { rate: 10 })])).toMatchObject({
      recommended: "good",
      reason: "The only variant that held the SLO at some rate. Excluded: wrong.",
    });
    expect(rank([wrong])).toMatchObject({
      recommended: null,
      reason: "No variant that was measured held the SLO at any rate. Excluded: wrong.",
    });
  });

  it("does not take a rate that nobody could measure for none", () => {
    const lost = {
      variant: variant("lost", "fp32", 8, 1),
      outcome: { ...failedOutcome("lost", ""), trials: [] },
    };
    expect(rank([lost, candidate("good", { rate: 10, halfWidth: 1 })]).reason).toBe(
      "The only variant whose SLO rate is known. Not known: lost.",
    );
    expect(rank([lost]).reason).toBe(
      "No valid trial near the limit of any variant, so no SLO rate is known. Not known: lost.",
    );
  });

  it("chooses the documents' winner from the fixtures: the rates tie at the wire, the GPU has more room", () => {
    const all = variants.flatMap((each, index) => {
      const outcome = outcomes[index];
      return outcome ? [{ variant: each, outcome }] : [];
    });
    expect(rank(all)).toMatchObject({
      recommended: "tftrt_int8_bs16_count4",
      tiedWith: ["tftrt_int8_bs8_count4"],
    });
  });
});

describe("answerGoal", () => {
  const candidates = [
    candidate("a", { rate: 1600 }),
    candidate("b", { rate: 1700 }),
    candidate("c", { rate: 900 }),
  ];

  it("says yes by the operating rate, with the room", () => {
    expect(answerGoal(1500, candidates)).toMatchObject({
      answer: "yes",
      variant: "b",
      reachedBy: ["b", "a"],
      summary: "The goal of 1,500 requests/s is reached by b with 12 % to spare. Also reached by a.",
    });
  });

  it("says no only when every interval ends below", () => {
    expect(answerGoal(1711, candidates)).toMatchObject({ answer: "no", variant: null, reachedBy: [] });
    expect(answerGoal(1705, candidates)).toMatchObject({ answer: "uncertain", variant: "b", reachedBy: [] });
  });

  it("counts a variant without a rate as missing the goal", () => {
    expect(
      answerGoal(1, [{ variant: variant("x", "fp32", 1, 1), outcome: failedOutcome("x", "") }]).answer,
    ).toBe("no");
  });
});
