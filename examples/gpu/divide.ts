/**
 * Divides the measurements among GPUs side by side: `node app/divide.js RESULTS GPUS PART...` writes RESULTS/gpu1, gpu2 and so on, each with
 * the parts that measure.sh has to take there and their files of variants, and at last RESULTS/division. The same every time, so that a run
 * goes on the same way on another machine.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { gridNames, type GridName } from "./grids";

/** Parts of measure.sh that one GPU has to take whole, in their order, and what they took on an H200, seconds. */
const wholePartS = { bare: 45, path: 350, explore: 240, explore20: 250 } as const;
/** A configuration of a grid, with loading and warming it up; the median of those on H200s, seconds. */
const configurationS: Readonly<Record<GridName, number>> = { grid: 60, grid20: 50 };

type WholePart = keyof typeof wholePartS;
export type Part = WholePart | GridName;

const wholeParts = Object.keys(wholePartS) as WholePart[];
export const allParts: readonly Part[] = [...wholeParts, ...gridNames];

interface Named {
  readonly name: string;
}

/** What one GPU measures. */
export interface Share<Variant extends Named> {
  /** Parts of measure.sh, in the order in which they are measured. */
  readonly parts: readonly string[];
  /** Configurations of the grids' parts, by part: PART and PART-2. */
  readonly variants: ReadonlyMap<string, readonly Variant[]>;
  /** Estimated, seconds. */
  readonly durationS: number;
}

/**
 * The first GPU takes all but the grids, and helps with them when it is done. A configuration of both grids is measured on one GPU, so that
 * its rates at both bounds can be compared. Of every grid the first half comes first, for both grids, and goes to the GPU that is free first.
 * @param grids configurations in the order in which they tell most
 */
export function divide<Variant extends Named>(
  gpus: number,
  parts: readonly Part[],
  grids: Readonly<Record<GridName, readonly Variant[]>>,
): Share<Variant>[] {
  const whole = wholeParts.filter((part) => parts.includes(part));
  const wanted = gridNames.filter((grid) => parts.includes(grid));
  const endS = Array.from({ length: gpus }, () => 0);
  for (const part of whole) endS[0]! += wholePartS[part];
  const tiers = wanted.flatMap((grid) => {
    const half = Math.ceil(grids[grid].length / 2);
    return [
      { grid, part: grid, late: false, variants: grids[grid].slice(0, half) },
      { grid, part: `${grid}-2`, late: true, variants: grids[grid].slice(half) },
    ];
  });
  // All first halves before all second ones.
  tiers.sort((a, b) => Number(a.late) - Number(b.late));
  const owners = new Map<string, number>();
  for (const name of tiers.flatMap(({ variants }) => variants.map((variant) => variant.name))) {
    if (owners.has(name)) continue;
    const free = endS.indexOf(Math.min(...endS));
    owners.set(name, free);
    for (const grid of wanted)
      if (grids[grid].some((variant) => variant.name === name)) endS[free]! += configurationS[grid];
  }
  return endS.map((durationS, gpu) => {
    const variants = new Map(
      tiers
        .map((tier) => [tier.part, tier.variants.filter(({ name }) => owners.get(name) === gpu)] as const)
        .filter(([, own]) => own.length > 0),
    );
    return { parts: [...(gpu === 0 ? whole : []), ...variants.keys()], variants, durationS };
  });
}

function main([results, gpuText, ...words]: readonly string[]): void {
  const gpus = Number(gpuText);
  const unknown = words.find((word) => !allParts.some((part) => part === word));
  if (results === undefined || !Number.isInteger(gpus) || gpus < 1 || words.length === 0)
    throw new Error("usage: divide.js RESULTS GPUS PART...");
  if (unknown !== undefined) throw new Error(`unknown part ${unknown}: ${allParts.join(", ")}`);
  const read = (grid: GridName): Named[] =>
    parse(readFileSync(join(__dirname, "..", `variants-${grid}.yaml`), "utf8")) as Named[];
  const shares = divide(gpus, words as Part[], { grid: read("grid"), grid20: read("grid20") });
  for (const [index, { parts, variants, durationS }] of shares.entries()) {
    const folder = join(results, `gpu${index + 1}`);
    mkdirSync(folder, { recursive: true });
    for (const [part, own] of variants) writeFileSync(join(folder, `variants-${part}.yaml`), stringify(own));
    writeFileSync(join(folder, "parts"), `${parts.join(" ")}\n`);
    process.stdout.write(`gpu${index + 1}: ${parts.join(" ") || "nothing"}, about ${durationS} s\n`);
  }
  writeFileSync(join(results, "division.new"), `${gpus} ${words.join(" ")}\n`);
  renameSync(join(results, "division.new"), join(results, "division"));
}

if (require.main === module) {
  try {
    main(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`divide: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  }
}
