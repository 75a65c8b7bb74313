/**
 * The pictures and the table of docs/how-the-number-is-made.md, from a sweep's results and from a scoreboard.
 * Run: npx tsx bench/search-pictures.ts SCOREBOARD.json [RESULTS-FOLDER VARIANT]; without a sweep its picture stays as it is.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findVariant } from "../model-repo/catalogue";
import { percentileMs } from "../serving-model/latency-bins";
import { simulate } from "../serving-model/simulate";
import { serviceLawFor } from "../serving-model/t4";
import { readResult } from "../tuning/results/results-folder";
import { renderTable, type StrategyScore, withTable } from "./search-report";
import { type Mark, picture } from "./svg";

const [scoreboard, folder, variantName] = process.argv.slice(2);
if (scoreboard === undefined || (folder !== undefined && variantName === undefined))
  throw new Error("usage: npx tsx bench/search-pictures.ts SCOREBOARD.json [RESULTS-FOLDER VARIANT]");
const images = join(__dirname, "../docs/images");

writeFileSync(join(images, "number-windows.svg"), windowsPicture());
if (folder !== undefined && variantName !== undefined)
  writeFileSync(join(images, "number-trials.svg"), trialsPicture(folder, variantName));
writeFileSync(join(images, "number-scoreboard.svg"), scoreboardPicture(scoreboard));

const document = join(__dirname, "../docs/how-the-number-is-made.md");
writeFileSync(document, withTable(readFileSync(document, "utf8"), renderTable(strategiesOf(scoreboard))));

function strategiesOf(file: string): StrategyScore[] {
  return (JSON.parse(readFileSync(file, "utf8")) as { strategies: StrategyScore[] }).strategies;
}

/** The same load, measured again and again with windows of three lengths: what one of them says is luck. */
function windowsPicture(): string {
  const variant = findVariant("tftrt_fp16_bs8_count4");
  const server = { ...variant, dynamicBatching: true, law: serviceLawFor(variant) };
  const rates = [1150, 1200, 1230, 1260, 1275, 1290];
  const lengths = [5, 30, 120];
  const marks: Mark[] = [
    {
      kind: "line",
      points: [
        [1130, 100],
        [1310, 100],
      ],
      colour: 3,
      dashed: true,
    },
  ];
  for (const [i, measureS] of lengths.entries()) {
    for (const ratePerS of rates) {
      const p95s = Array.from({ length: 12 }, (_, seed) =>
        percentileMs(
          simulate(server, {
            shape: { kind: "poisson", ratePerS },
            seed: 31 + seed,
            warmupS: 2,
            measureS,
            sloBoundMs: 100,
          }).responseCounts,
          0.95,
        ),
      );
      marks.push({
        kind: "range",
        x: ratePerS + 5 * (i - 1),
        low: Math.min(...p95s),
        high: Math.min(400, Math.max(...p95s)),
        colour: i,
      });
    }
    marks.push({ kind: "dot", at: [1137, 360 / 1.25 ** i], colour: i, text: `12 windows of ${measureS} s` });
  }
  return picture(
    "One server, one rate, twelve measurements: from the lowest to the highest p95",
    { label: "requests/s", low: 1130, high: 1310, ticks: rates },
    { label: "p95, ms", low: 20, high: 400, ticks: [25, 50, 100, 200, 400], log: true },
    marks,
  );
}

/** What a sweep did: its trials, the model that joins them, the interval. */
function trialsPicture(from: string, name: string): string {
  const result = readResult(from);
  const variant = result.variants.find((one) => one.name === name);
  if (!variant?.sloRate || !variant.modelCurve)
    throw new Error(`${from} has no SLO rate and model of ${name}.`);
  const { low, high, estimate } = variant.sloRate;
  const [left, right] = [estimate * 0.8, estimate * 1.06];
  const inside = <P extends { ratePerS: number }>(points: readonly P[]): P[] =>
    points.filter(({ ratePerS }) => ratePerS >= left && ratePerS <= right);
  const curve = inside(variant.modelCurve);
  const trials = inside(variant.trials).filter(
    ({ purpose, quantileMs }) => purpose !== "probe" && quantileMs !== null,
  );
  const ceiling =
    Math.max(
      160,
      ...curve.map(({ quantileMs }) => quantileMs),
      ...trials.map(({ quantileMs }) => quantileMs!),
    ) * 1.05;
  const marks: Mark[] = [
    { kind: "band", from: low, to: high, colour: 2 },
    {
      kind: "line",
      points: [
        [left, result.slo.boundMs],
        [right, result.slo.boundMs],
      ],
      colour: 3,
      dashed: true,
    },
    { kind: "line", points: curve.map(({ ratePerS, quantileMs }) => [ratePerS, quantileMs]), colour: 0 },
    ...(variant.operatingRate === null
      ? []
      : [
          {
            kind: "line",
            points: [
              [variant.operatingRate, 0],
              [variant.operatingRate, ceiling],
            ],
            colour: 2,
            dashed: true,
          } as const,
        ]),
    ...trials.map(({ ratePerS, quantileMs, verdict }): Mark => ({
      kind: "dot",
      at: [ratePerS, quantileMs!],
      colour: 1,
      hollow: verdict !== "pass",
    })),
  ];
  const ticks = Array.from({ length: 6 }, (_, i) => Math.round((left + ((right - left) * i) / 5) / 10) * 10);
  return picture(
    `${name}: trials (filled: passed), fitted model, 95 % interval, operating rate (dashed)`,
    { label: "requests/s", low: left, high: right, ticks: ticks.slice(1, -1) },
    { label: "p95, ms", low: 0, high: ceiling, ticks: [0, 50, 100, 150].filter((tick) => tick < ceiling) },
    marks,
  );
}

/** Load spent against rates that do not hold. */
function scoreboardPicture(file: string): string {
  const strategies = strategiesOf(file);
  const short = ["this project", "30 s, point percentile", "30 s, binomial test", "three stable windows"];
  const most = Math.max(...strategies.map(({ meanMeasuredS }) => meanMeasuredS));
  return picture(
    `Rates that do not hold in a long run, of ${strategies[0]!.sweeps} sweeps each`,
    {
      label: "seconds of load a sweep",
      low: 0,
      high: most * 1.45,
      ticks: [0, 100, 200, 300, 400, 500].filter((tick) => tick < most * 1.45),
    },
    {
      label: "false passes",
      low: 0,
      high: 0.6,
      ticks: [0, 0.1, 0.2, 0.3, 0.4, 0.5],
      format: (value) => `${Math.round(100 * value)} %`,
    },
    strategies.map((row, i): Mark => ({
      kind: "dot",
      at: [row.meanMeasuredS, row.falsePassRate],
      colour: i === 0 ? 2 : 1,
      text: `${short[i]}: ${(100 * row.falsePassRate).toFixed(1)} %`,
    })),
  );
}
