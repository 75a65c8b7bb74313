/**
 * Table and picture of what measure.sh found: `npx tsx examples/gpu/summary.ts docs/evidence/h200` reads the parts' result.json and
 * bare.json there, prints Markdown, and writes rates.svg (the path), explore.svg and explore20.svg (against their grids) and, from the parts' points.jsonl,
 * observations.json. A part that was measured in
 * pieces lies in PART, PART-2, ..., and what several GPUs measured side by side in gpu1, gpu2, ...
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resultSchema, type Result } from "../../tuning/results/result-schema";
import { writeObservations } from "./observations";
import { placesIn } from "./places";

type VariantResult = Result["variants"][number];

interface Bare {
  readonly precision: string;
  readonly batch: number;
  readonly graphImagesPerS: number;
  readonly withCopiesImagesPerS: number;
}

const folder = process.argv[2];
if (folder === undefined) {
  process.stderr.write("usage: summary.ts FOLDER\n");
  process.exit(2);
}

/** Results of a part, those of PART-2 and so on after the first; null when it was not measured. */
function partOf(name: string): Pick<Result, "slo" | "variants"> | null {
  const results = placesIn(folder!)
    .flatMap((place) =>
      readdirSync(place)
        .filter((entry) => entry.replace(/-\d+$/, "") === name)
        .sort()
        .map((entry) => join(place, entry, "result.json")),
    )
    .filter((file) => existsSync(file))
    .map((file) => resultSchema.parse(JSON.parse(readFileSync(file, "utf8"))));
  return results[0] === undefined
    ? null
    : { slo: results[0].slo, variants: results.flatMap(({ variants }) => variants) };
}

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");

/** Seconds of load in measured windows. */
function measuredS({ variants }: Pick<Result, "variants">): number {
  return variants.reduce((sum, variant) => sum + variant.measuredS, 0);
}

function rowOf(variant: VariantResult, before: VariantResult | undefined): string {
  const { sloRate, gpuBusy, diagnosis } = variant;
  const gain =
    sloRate && before?.sloRate ? `${(sloRate.estimate / before.sloRate.estimate).toFixed(2)} ×` : "";
  const move = diagnosis.nextMove;
  return [
    `\`${variant.name}\``,
    sloRate ? whole(sloRate.estimate) : "none",
    sloRate ? `${whole(sloRate.low)} to ${whole(sloRate.high)}` : "",
    gain,
    gpuBusy === null ? "" : `${Math.round(100 * gpuBusy)} %`,
    diagnosis.cause,
    move ? `${move.change}: ${(1 + move.predictedGain).toFixed(2)} ×` : "",
  ].join(" | ");
}

function tableOf(result: Pick<Result, "slo" | "variants">): string {
  const head = [
    `p${100 * result.slo.quantile} ≤ ${result.slo.boundMs} ms`,
    "SLO rate, requests/s",
    "95 % interval",
    "measured gain",
    "GPU busy",
    "limited by",
    "predicted next move",
  ];
  const rows = result.variants.map((variant, index) => rowOf(variant, result.variants[index - 1]));
  return [head.join(" | "), head.map(() => "---").join(" | "), ...rows].map((row) => `| ${row} |`).join("\n");
}

/** Horizontal bars with their intervals, and what the bare model passes as a line. */
function picture(bars: readonly VariantResult[], limit: number, limitText: string): string {
  const [width, left, height] = [760, 230, 30];
  const most = Math.max(limit, ...bars.map(({ sloRate }) => sloRate!.high)) * 1.05;
  const x = (rate: number): number => left + ((width - left - 20) * rate) / most;
  const total = bars.length * height + 60;
  const rows = bars.map(({ name, sloRate }, index) => {
    const y = 40 + index * height;
    const { estimate, low, high } = sloRate!;
    const label = x(estimate) > width - 90 ? x(low) - 8 : x(high) + 8;
    return (
      `<text x="${left - 10}" y="${y + 15}" text-anchor="end">${name}</text>` +
      `<rect x="${left}" y="${y + 3}" width="${(x(estimate) - left).toFixed(1)}" height="16" fill="#9fc9b8"/>` +
      `<line x1="${x(low).toFixed(1)}" x2="${x(high).toFixed(1)}" y1="${y + 11}" y2="${y + 11}" stroke="#12302b" stroke-width="4"/>` +
      `<text x="${label.toFixed(1)}" y="${y + 15}"${label < x(low) ? ' text-anchor="end"' : ""}>${whole(estimate)}</text>`
    );
  });
  const at = x(limit).toFixed(1);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${total}" font-family="system-ui, sans-serif" font-size="12" fill="#1b1b1b">` +
    `<rect width="${width}" height="${total}" fill="#fbfaf6"/>` +
    `<line x1="${at}" x2="${at}" y1="28" y2="${total - 10}" stroke="#8a5a00" stroke-dasharray="4 3"/>` +
    `<text x="${at}" y="20" text-anchor="end" fill="#8a5a00">${limitText}</text>${rows.join("")}</svg>\n`
  );
}

function bareRows(): Bare[] {
  const file = placesIn(folder!)
    .map((place) => join(place, "bare.json"))
    .find((path) => existsSync(path));
  return file === undefined ? [] : (JSON.parse(readFileSync(file, "utf8")) as { rows: Bare[] }).rows;
}

const line = (text: string): void => void process.stdout.write(`- ${text}\n`);

/** The best of an exploration against the best of its grid, and what both cost. */
function compare(explored: string, grid: string): void {
  const [one, all] = [partOf(explored), partOf(grid)];
  if (one === null || all === null) return;
  const [found, best] = [bestOf(one.variants), bestOf(all.variants)];
  if (found === null || best === null) return;
  const share = found.sloRate!.estimate / best.sloRate!.estimate;
  line(
    `${explored}: ${found.name} ${whole(found.sloRate!.estimate)} against the best of ${all.variants.length}, ` +
      `${best.name} ${whole(best.sloRate!.estimate)} requests/s: ${(100 * share).toFixed(1)} %`,
  );
  const [spent, allS] = [measuredS(one), measuredS(all)];
  line(
    `${explored}: ${whole(spent)} of the grid's ${whole(allS)} measured seconds: ${((100 * spent) / allS).toFixed(1)} %`,
  );
  const bars = [
    ...measuredOf(one.variants).map((variant) => named(variant, "explored: ")),
    ...measuredOf(all.variants)
      .sort((a, b) => b.sloRate!.estimate - a.sloRate!.estimate)
      .map((variant) => named(variant, "")),
  ];
  const limit = best.sloRate!.estimate;
  writeFileSync(join(folder!, `${explored}.svg`), picture(bars, limit, `the grid's best: ${whole(limit)}/s`));
  const same = all.variants.find(({ name, sloRate }) => name === found.name && sloRate !== null);
  if (same)
    line(
      `${found.name} in the grid: ${whole(same.sloRate!.estimate)}, ${whole(same.sloRate!.low)} to ${whole(same.sloRate!.high)}`,
    );
}

function measuredOf(variants: readonly VariantResult[]): VariantResult[] {
  return variants.filter(({ sloRate }) => sloRate !== null);
}

/** By its settings: largest batch x instances, queue delay. */
function named(variant: VariantResult, prefix: string): VariantResult {
  const { maxBatchSize, instanceCount, queueDelayUs } = variant.settings;
  return { ...variant, name: `${prefix}${maxBatchSize} × ${instanceCount}, ${queueDelayUs / 1000} ms` };
}

function bestOf(variants: readonly VariantResult[]): VariantResult | null {
  return measuredOf(variants).reduce<VariantResult | null>(
    (best, one) => (best === null || one.sloRate!.estimate > best.sloRate!.estimate ? one : best),
    null,
  );
}

const trials = writeObservations(folder);
if (trials > 0) line(`${trials} trials in observations.json`);
for (const name of ["path", "explore", "explore20", "grid", "grid20"]) {
  const result = partOf(name);
  if (result) process.stdout.write(`## ${name}\n\n${tableOf(result)}\n\n`);
}
compare("explore", "grid");
compare("explore20", "grid20");
const found = ["path", "explore"]
  .flatMap((name) => partOf(name)?.variants ?? [])
  .filter(({ sloRate }) => sloRate !== null);
const [untuned, best] = [found.find(({ name }) => name === "untuned"), bestOf(found)];
if (untuned && best)
  line(`best over untuned: ${(best.sloRate!.estimate / untuned.sloRate!.estimate).toFixed(1)} x`);
const most = bareRows()
  .filter(({ precision }) => precision === "fp16")
  .sort((a, b) => b.batch - a.batch)[0];
if (most && best) {
  line(
    `bare model, FP16 batch ${most.batch}: ${whole(most.graphImagesPerS)} images/s, with copies ${whole(most.withCopiesImagesPerS)}; ` +
      `the best serves ${Math.round((100 * best.sloRate!.estimate) / most.graphImagesPerS)} and ` +
      `${Math.round((100 * best.sloRate!.estimate) / most.withCopiesImagesPerS)} % of that`,
  );
  const unique = [...new Map(found.map((variant) => [variant.name, variant])).values()];
  writeFileSync(
    join(folder, "rates.svg"),
    picture(
      unique,
      most.graphImagesPerS,
      `bare model, batch ${most.batch}: ${whole(most.graphImagesPerS)}/s`,
    ),
  );
}
