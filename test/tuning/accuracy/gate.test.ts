import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Precision, Variant } from "../../../model-repo/variant";
import { AccuracyGate, type AccuracyStore } from "../../../tuning/accuracy/gate";
import { defaultLimits, limitsFrom, violations } from "../../../tuning/accuracy/limits";
import { accuracyFileName, openAccuracyStore } from "../../../tuning/accuracy/store";
import { makeVariant } from "../make";

function variantOf(name: string, precision: Precision, artefact = name): Variant {
  const { artefact: base } = makeVariant(name);
  return makeVariant(name, { artefact: { ...base, name: artefact, precision } });
}

const reference = variantOf("original", "original");
const good = variantOf("good", "int8");
const wrong = variantOf("wrong", "fp16");
const noStore: AccuracyStore = { find: () => null, add: () => undefined };

const answers: Readonly<Record<string, readonly number[][]>> = {
  original: [
    [0.8, 0.1, 0.1],
    [0.1, 0.8, 0.1],
  ],
  good: [
    [0.7, 0.2, 0.1],
    [0.1, 0.75, 0.15],
  ],
  wrong: [
    [0.1, 0.1, 0.8],
    [0.1, 0.8, 0.1],
  ],
  broken: [
    [NaN, 0, 0],
    [0, 1, 0],
  ],
};

function gateOf(
  variants: readonly Variant[],
  store: AccuracyStore = noStore,
): { gate: AccuracyGate; asked: string[] } {
  const asked: string[] = [];
  const gate = new AccuracyGate({
    reference,
    variants,
    limits: defaultLimits,
    store,
    scoresOf: async ({ name }) => {
      asked.push(name);
      return answers[name]!.map((scores) => Float32Array.from(scores));
    },
  });
  return { gate, asked };
}

describe("the gate", () => {
  it("lets a good conversion pass and names every limit that a wrong one breaks", async () => {
    const { gate, asked } = gateOf([reference, good, wrong]);
    expect(await gate.check(reference)).toBeNull();
    expect(await gate.check(good)).toMatchObject({ reference: "original", passed: true, reasons: [] });
    const verdict = await gate.check(wrong);
    expect(verdict).toMatchObject({ passed: false, figures: { images: 2, top1Agreement: 0.5 } });
    expect(verdict!.reasons).toEqual([
      "top-1 agreement 50.0 %, at least 95.0 % is asked for",
      "largest difference of a probability 0.7000, at most 0.1 is allowed",
      "mean difference of probabilities 0.3500, at most 0.02 is allowed",
    ]);
    expect(gate.verdictOf(wrong)).toBe(verdict);
    expect(gate.verdictOf(reference)).toBeNull();
    // Each was served once, in the order of the sweep.
    expect(asked).toEqual(["original", "good", "wrong"]);
  });

  it("asks a reference that is not measured before the first conversion", async () => {
    const { gate, asked } = gateOf([good]);
    await gate.check(good);
    expect(asked).toEqual(["original", "good"]);
  });

  it("compares no unconverted models and no other settings of the reference", async () => {
    const settings = variantOf("original_bs8", "original", "original");
    const other = variantOf("another", "original");
    const { gate, asked } = gateOf([reference, settings, other]);
    for (const variant of [reference, settings, other]) expect(await gate.check(variant)).toBeNull();
    expect(asked).toEqual([]);
  });

  it("excludes what cannot be compared, and passes on that a server does not answer", async () => {
    const broken = variantOf("broken", "fp32");
    const { gate } = gateOf([broken]);
    expect(await gate.check(broken)).toEqual({
      reference: "original",
      figures: null,
      passed: false,
      reasons: ["1 of its answers to 2 images hold numbers that are not finite"],
    });
    await expect(gate.check(variantOf("gone", "int8"))).rejects.toThrow();
  });
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "accuracy-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("accuracy.json", () => {
  it("spares a continued sweep the check, as long as nothing that decides it changes", async () => {
    const path = folder();
    const first = gateOf([reference, good], openAccuracyStore(path, "server", "images"));
    const verdict = await first.gate.check(good);
    const second = gateOf([reference, good], openAccuracyStore(path, "server", "images"));
    expect(await second.gate.check(reference)).toBeNull();
    expect(await second.gate.check(good)).toEqual(verdict);
    expect(second.asked).toEqual([]);
    for (const [server, images] of [
      ["another", "images"],
      ["server", "others"],
    ] as const) {
      const changed = gateOf([good], openAccuracyStore(path, server, images));
      await changed.gate.check(good);
      expect(changed.asked).toEqual(["original", "good"]);
    }
    expect(
      Object.keys(
        (JSON.parse(readFileSync(join(path, accuracyFileName), "utf8")) as { checks: object }).checks,
      ),
    ).toHaveLength(3);
  });

  it("says what to do when it is damaged", () => {
    const path = folder();
    writeFileSync(join(path, accuracyFileName), '{"schemaVersion": 1, "checks": {"a": {}}}');
    expect(() => openAccuracyStore(path, "server", "images")).toThrow(
      /accuracy\.json cannot be used .*remove it/s,
    );
  });
});

describe("limits", () => {
  it("of a user's replace single defaults", () => {
    expect(limitsFrom({ int8: { top1Agreement: 0.5 } })).toEqual({
      ...defaultLimits,
      int8: { ...defaultLimits.int8, top1Agreement: 0.5 },
    });
    expect(limitsFrom({})).toEqual(defaultLimits);
    for (const bad of [
      { int4: {} },
      { int8: { top1: 1 } },
      { int8: { top1Agreement: 90 } },
      [],
      "int8",
      null,
    ])
      expect(() => limitsFrom(bad)).toThrow();
  });

  it("allow their own value", () => {
    const figures = {
      images: 1,
      top1Agreement: 0.85,
      top5Agreement: 0.95,
      maxDifference: 0.6,
      meanDifference: 0.15,
      afterSoftmax: false,
    };
    expect(violations(figures, defaultLimits.int8)).toEqual([]);
    expect(violations({ ...figures, meanDifference: 0.151 }, defaultLimits.int8)).toHaveLength(1);
  });
});
