import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { serviceLawFor } from "../../serving-model/t4";
import { lawToJson, writeManifest, type Manifest } from "../../tuning/results/manifest";
import { buildResult } from "../../tuning/results/build-result";
import { pointLogFileName, type PointRecord } from "../../tuning/results/point-log";
import { resultFileName, type Result } from "../../tuning/results/result-schema";
import { namedNonFinite } from "../../tuning/results/trial-schema";
import { budgetFor } from "../../tuning/search/budget";
import { wordsToRepeat } from "../../scripts/replay-words";
import { parseTuneCommandLine } from "../../scripts/tune-options";
import { catalogue } from "../../model-repo/catalogue";
import { context, outcomes } from "../tuning/fixtures/outcomes";
import { manifest } from "../tuning/results/manifest-fixture";
import { search } from "../tuning/search/virtual-search";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "compare-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function write(name: string, result: Result, about: Manifest = manifest): string {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, resultFileName), JSON.stringify(result));
  writeManifest(folder, about);
  return folder;
}

function run(script: string, ...words: string[]): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    const path = join(__dirname, `../../scripts/${script}.ts`);
    execFile(process.execPath, ["--import", "tsx", path, ...words], (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === "number" ? error.code : error ? 1 : 0, text: stdout + stderr }),
    );
  });
}

describe("npm run compare", () => {
  const result = buildResult(outcomes, context);
  const slower: Result = {
    ...result,
    variants: result.variants.map((variant) => ({
      ...variant,
      sloRate: variant.sloRate && {
        ...variant.sloRate,
        estimate: variant.sloRate.estimate / 2,
        low: variant.sloRate.low / 2,
        high: variant.sloRate.high / 2,
      },
    })),
  };

  it("fails when a variant is worse, says what else differs, and refuses what cannot be compared", async () => {
    const before = write("before", result);
    const after = write("after", slower, { ...manifest, seed: 2 });
    const other = write("other", { ...result, slo: { ...result.slo, boundMs: 50 } });
    const [worse, better, same, refused] = await Promise.all([
      run("compare", before, after),
      run("compare", after, before),
      run("compare", before, before, "--strict"),
      run("compare", before, other),
    ]);
    expect(worse.text).toMatch(/Verdict: worse/);
    expect(worse.text).toContain("differs: seed: 1 before, 2 now");
    expect(worse.code).toBe(6);
    expect(better.code).toBe(0);
    expect(same.code).toBe(7);
    expect(refused.code).toBe(2);
    expect(refused.text).toMatch(/cannot be compared: they have different SLOs/);
  });
});

describe("npm run replay -- RUN --recorded", () => {
  /** A sweep of one variant, in virtual time, as it lies in a results folder. */
  function recordedSweep(name: string, change: (rate: number) => number): string {
    const variant = catalogue[2]!;
    const records: PointRecord[] = [];
    const { outcome } = search(variant, { seed: 1, budget: budgetFor("quick", 2) }, {}, (spec, result) => {
      const key = String(records.length).padStart(64, "0");
      records.push({ schemaVersion: 1, key, attempt: 1, finishedAt: "", timeDilation: 2, spec, result });
      return result;
    });
    const estimate = change(outcome.sloRate!.estimate);
    const result = buildResult([{ ...outcome, sloRate: { ...outcome.sloRate!, estimate } }], {
      ...context,
      variants: [variant],
    });
    const entry = { variant, modelHash: null, law: lawToJson(serviceLawFor(variant)), timeDilation: 2 };
    const about = { ...manifest, seed: 1, load: "poisson", variants: [entry] };
    const folder = write(name, result, {
      ...about,
      variants: [
        { ...entry, variant: { ...variant, preferredBatchSizes: [...variant.preferredBatchSizes] } },
      ],
    });
    writeFileSync(
      join(folder, pointLogFileName),
      records.map((record) => `${JSON.stringify(record, namedNonFinite)}\n`).join(""),
    );
    return folder;
  }

  it("comes to the same from the recorded trials, and says when it does not", async () => {
    const [same, other] = await Promise.all([
      run(
        "replay",
        recordedSweep("same", (rate) => rate),
        "--recorded",
      ),
      run(
        "replay",
        recordedSweep("other", (rate) => rate * 1.01),
        "--recorded",
      ),
    ]);
    expect(same.text).toMatch(/tftrt_fp16: [\d,.]+ requests\/s again, from \d+ trials/);
    expect(same.code).toBe(0);
    expect(other.text).toMatch(/requests\/s now, [\d,.]+ requests\/s before/);
    expect(other.code).toBe(6);
  });
});

describe("the words that repeat a sweep", () => {
  it("are its options, but nothing that changes a stack", () => {
    const options: Manifest["options"] = {
      variants: ["a", "b"],
      triton: { addresses: ["h:1", "i:1"], metrics: null },
      stack: null,
      goalRatePerS: 12.5,
      maxCostUsd: 5,
      explore: 0,
      effort: "thorough",
      yesProd: false,
      apply: true,
      after: "scale-to-zero",
      out: "results/x",
      resume: true,
      timeDilation: null,
      accuracy: false,
      transport: "lean",
    };
    expect(wordsToRepeat({ ...manifest, options, seed: 7 }).join(" ")).toBe(
      "--seed 7 --slo p95=100ms --thorough --no-accuracy --triton h:1,i:1 --variants a,b --goal-rate 12.5 --transport lean",
    );
  });

  it.each([
    [],
    ["--variants", "tftrt_fp16", "--executor", "simulated-t4", "--explore", "2", "--race"],
    ["--triton", "h:1,i:1", "--metrics", "http://h:2/metrics", "--variants-file", "v.yaml", "--explore", "3"],
    ["--triton", "h:1", "--max-rate", "20000", "--max-minutes", "4.4", "--workers", "3", "--no-accuracy"],
    ["--stack", "dev", "--load", "users", "--goal-rate", "100", "--max-cost", "3"],
  ])("are taken by the command as they were: %j", (...words: string[]) => {
    const optionsOf = (line: readonly string[]): Manifest["options"] => {
      const parsed = parseTuneCommandLine(line, ["tftrt_fp16"]);
      if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
      return z.record(z.string(), z.json()).parse(parsed.options);
    };
    const options = optionsOf(words);
    expect(optionsOf(wordsToRepeat({ ...manifest, options }))).toEqual({
      ...options,
      slo: { ...manifest.slo },
      seed: manifest.seed,
    });
  });

  it("refuse an option that it does not know how to write", () => {
    expect(() => wordsToRepeat({ ...manifest, options: { strange: { a: 1 } } })).toThrow(
      /option strange is not known/,
    );
  });
});
