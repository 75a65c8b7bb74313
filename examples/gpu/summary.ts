/**
 * Table and picture of what measure.sh found: `npx tsx examples/gpu/summary.ts docs/evidence/h200` reads the parts' result.json and
 * bare.json there, prints Markdown, and writes rates.svg.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { resultSchema, type Result } from "../../tuning/results/result-schema";

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

function partOf(name: string): Result | null {
  const file = join(folder!, name, "result.json");
  return existsSync(file) ? resultSchema.parse(JSON.parse(readFileSync(file, "utf8"))) : null;
}

const whole = (value: number): string => Math.round(value).toLocaleString("en-US");

/** Seconds of load in measured windows. */
function measuredS(result: Result): number {
  return result.variants.reduce((sum, variant) => sum + variant.measuredS, 0);
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

function tableOf(result: Result): string {
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
  const [width, left, height] = [760, 190, 30];
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

const bare = JSON.parse(readFileSync(join(folder, "bare.json"), "utf8")) as Bare[] | { rows: Bare[] };
const rows = Array.isArray(bare) ? bare : bare.rows;
const most = rows.filter(({ precision }) => precision === "fp16").sort((a, b) => b.batch - a.batch)[0]!;
const parts = {
  path: partOf("path"),
  explore: partOf("explore"),
  grid: partOf("grid"),
  strict: partOf("strict"),
};
for (const [name, result] of Object.entries(parts))
  if (result) process.stdout.write(`## ${name}\n\n${tableOf(result)}\n\n`);

const rateOf = (result: Result): number =>
  Math.max(...result.variants.map(({ sloRate }) => sloRate?.estimate ?? 0));
const { path, explore, grid } = parts;
const line = (text: string): void => void process.stdout.write(`- ${text}\n`);
line(
  `bare model, FP16 batch ${most.batch}: ${whole(most.graphImagesPerS)} images/s, with copies ${whole(most.withCopiesImagesPerS)}`,
);
if (explore && grid) {
  line(
    `explored ${whole(rateOf(explore))} against the grid's best ${whole(rateOf(grid))} requests/s: ${(rateOf(explore) / rateOf(grid)).toFixed(3)}`,
  );
  line(`measured seconds: ${whole(measuredS(explore))} against ${whole(measuredS(grid))}`);
}
const found = [path, explore]
  .flatMap((result) => result?.variants ?? [])
  .filter(({ sloRate }) => sloRate !== null);
const untuned = found.find(({ name }) => name === "untuned");
const best = Math.max(...found.map(({ sloRate }) => sloRate!.estimate));
if (untuned) line(`best over untuned: ${(best / untuned.sloRate!.estimate).toFixed(1)} ×`);
line(`best over the bare model with copies: ${Math.round((100 * best) / most.withCopiesImagesPerS)} %`);
const unique = [...new Map(found.map((variant) => [variant.name, variant])).values()];
writeFileSync(
  join(folder, "rates.svg"),
  picture(unique, most.withCopiesImagesPerS, `bare model with copies: ${whole(most.withCopiesImagesPerS)}/s`),
);
