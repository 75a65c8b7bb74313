import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { baselines, runBaseline } from "../../bench/search-baselines";
import { scoreOf, type Score, type SweepAnswer } from "../../bench/search-answer";
import { complaintsAbout } from "../../bench/search-bounds";
import { renderTable, summarise, type StrategyScore } from "../../bench/search-report";
import { TruthCache, WorkFile } from "../../bench/search-cache";
import { kindOf, randomWorld, worldKinds } from "../../bench/search-worlds";

const answer: SweepAnswer = {
  estimate: 500,
  interval: { low: 490, high: 510 },
  promised: 495,
  trials: [{ ratePerS: 500, fromS: 0, toS: 20 }],
  measuredS: 20,
  diagnosis: null,
};
const score = (change: Partial<Score>): Score => ({
  seed: 0,
  kind: "exact",
  strategy: "ours",
  truth: 500,
  error: 0,
  covered: true,
  falsePass: false,
  halfWidth: 0.02,
  promisedShare: 0.99,
  measuredS: 100,
  trials: 5,
  rightCause: true,
  rightMove: true,
  said: null,
  right: null,
  ...change,
});

describe("random servers", () => {
  it("are the same for the same seed, and of every kind", () => {
    expect(new Set(Array.from({ length: 20 }, (_, seed) => kindOf(seed)))).toEqual(new Set(worldKinds));
    expect(randomWorld(4).law).toEqual(randomWorld(4).law);
    expect(randomWorld(4).law).not.toEqual(randomWorld(24).law);
  });
});

describe("a sweep's score", () => {
  const world = randomWorld(0);
  const known = (truth: number): TruthCache => {
    const truths = new TruthCache(null, "");
    truths.put("0:0-0", truth);
    return truths;
  };

  it("is its error, whether the interval holds the truth, and whether more was promised than holds", () => {
    expect(scoreOf("ours", answer, world, known(500))).toMatchObject({
      error: 0,
      covered: true,
      falsePass: false,
    });
    expect(scoreOf("ours", answer, world, known(400))).toMatchObject({
      error: 0.25,
      covered: false,
      falsePass: true,
    });
    const none = { ...answer, estimate: null, interval: null, promised: null };
    expect(scoreOf("ours", none, world, known(500))).toMatchObject({
      error: -1,
      covered: false,
      falsePass: false,
    });
  });
});

describe("what is kept between runs", () => {
  const inFolder = (test: (folder: string) => void): void => {
    const folder = mkdtempSync(join(tmpdir(), "scoreboard-"));
    try {
      test(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  it("is there after an interruption, for the same code only", () => {
    inFolder((folder) => {
      const path = join(folder, "truths.jsonl");
      new TruthCache(path, "a").put("1:0-0", 17);
      new WorkFile(join(folder, "work.jsonl"), "a").add({ seed: 3 });
      const unmade = (): never => {
        throw new Error("is known");
      };
      expect(new TruthCache(path, "a").get("1:0-0", unmade)).toBe(17);
      expect(new TruthCache(path, "b").of(1)).toEqual([]);
      expect([...new WorkFile(join(folder, "work.jsonl"), "a").done.keys()]).toEqual([3]);
      expect(new WorkFile(join(folder, "work.jsonl"), "b").done.size).toBe(0);
    });
  });

  it("is tidied up without losing anything of this code", () => {
    inFolder((folder) => {
      const path = join(folder, "truths.jsonl");
      new TruthCache(path, "old").put("1:0-0", 17);
      const cache = new TruthCache(path, "new");
      cache.put("2:0-0", null);
      cache.tidy();
      expect(new TruthCache(path, "old").of(1)).toEqual([]);
      expect(new TruthCache(path, "new").of(2)).toEqual([["2:0-0", null]]);
    });
  });
});

describe("the table", () => {
  const scores = [
    score({}),
    score({ error: -0.03, covered: false, rightMove: false }),
    score({ error: 0.1, falsePass: true, measuredS: 130 }),
    score({ strategy: "other", rightCause: null, rightMove: null, measuredS: 400, error: 0.2 }),
  ];

  it("has a row a strategy, ours first, in the members that other tools read", () => {
    const rows = summarise(scores);
    expect(rows.map(({ name }) => name)).toEqual(["ours", "other"]);
    expect(Object.keys(rows[0]!)).toEqual([
      ...["name", "sweeps", "falsePassRate", "medianRelativeError", "intervalCoverage", "meanMeasuredS"],
      "rightDiagnosisRate",
    ]);
    expect(rows[0]).toMatchObject({ sweeps: 3, medianRelativeError: 0.03, meanMeasuredS: 110 });
    expect(rows[0]!.falsePassRate).toBeCloseTo(1 / 3, 12);
    expect(rows[0]!.rightDiagnosisRate).toBeCloseTo(2 / 3, 12);
    expect(rows[1]!.rightDiagnosisRate).toBeNull();
    expect(renderTable(rows)).toContain("| other | 1 | 0.0 % | 20.0 % | 100.0 % | 400 s | – |");
  });

  it("is complained about where it breaks a promise", () => {
    const good: StrategyScore = {
      name: "ours",
      sweeps: 1000,
      falsePassRate: 0.005,
      medianRelativeError: 0.005,
      intervalCoverage: 0.95,
      meanMeasuredS: 150,
      rightDiagnosisRate: 0.97,
    };
    const common = {
      ...good,
      falsePassRate: 0.4,
      medianRelativeError: 0.01,
      meanMeasuredS: 450,
      rightDiagnosisRate: null,
    };
    expect(complaintsAbout([good, common])).toEqual([]);
    const bad = {
      falsePassRate: 0.03,
      medianRelativeError: 0.03,
      intervalCoverage: 0.8,
      meanMeasuredS: 300,
      rightDiagnosisRate: 0.8,
    };
    for (const [member, value] of Object.entries(bad))
      expect(complaintsAbout([{ ...good, [member]: value }, common]).length, member).toBeGreaterThan(0);
    // A little is enough over so many sweeps.
    const little = {
      falsePassRate: 0.0175,
      intervalCoverage: 0.93,
      meanMeasuredS: 190,
      rightDiagnosisRate: 0.93,
    };
    for (const [member, value] of Object.entries(little))
      expect(complaintsAbout([{ ...good, [member]: value }, common]), member).toHaveLength(1);
    expect(complaintsAbout([{ ...good, intervalCoverage: 0.99 }, common])[0]).toContain("95 to 97.0 %");
    // Chance over few sweeps is no broken promise.
    expect(complaintsAbout([{ ...good, sweeps: 100, falsePassRate: 0.02 }, common])).toEqual([]);
  });
});

describe("what people do today", () => {
  it.each(baselines.map((baseline) => [baseline.name, baseline] as const))(
    "%s ends within 2 %%",
    (_name, baseline) => {
      const { interval, promised, trials, measuredS } = runBaseline(baseline, randomWorld(0));
      expect(interval!.high / interval!.low).toBeLessThanOrEqual(1.02);
      expect(promised).toBe(interval!.low);
      expect(measuredS).toBeCloseTo(
        trials.reduce((sum, { fromS, toS }) => sum + toS - fromS, 0),
        6,
      );
    },
  );
});
