/**
 * Exploration against the exhaustive grid of examples/gpu on the server of docs/evidence/h200, in virtual time.
 * Run: npm run bench:h200 [-- --seeds 1,2,3 --most 3]; some minutes for every seed and objective.
 */
import { parseArgs } from "node:util";
import { bestOfGrid, exploreIn, gridSeconds, World } from "./h200-explore";

const boundsMs = [100, 20];
const { values } = parseArgs({
  options: { seeds: { type: "string", default: "1,2,3" }, most: { type: "string", default: "3" } },
});

async function main(): Promise<void> {
  process.stdout.write(
    "| p95 within | seed | measured, after the start | found, true/s | grid's best, true/s | share | measured s | of the grid's |\n" +
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n",
  );
  for (const boundMs of boundsMs) {
    const world = new World({ quantile: 0.95, boundMs });
    const best = bestOfGrid(world);
    for (const seed of values.seeds.split(",").map(Number)) {
      const found = await exploreIn(world, seed, Number(values.most));
      const gridS = gridSeconds(world, seed);
      const cells = [
        `${boundMs} ms`,
        seed,
        found.explored.slice(1).join(", "),
        `${found.name} ${found.truePerS.toFixed(0)}`,
        `${best.name} ${best.truePerS.toFixed(0)}`,
        `${((100 * found.truePerS) / best.truePerS).toFixed(1)} %`,
        `${found.measuredS.toFixed(0)} of ${gridS.toFixed(0)}`,
        `${((100 * found.measuredS) / gridS).toFixed(1)} %`,
      ];
      process.stdout.write(`| ${cells.join(" | ")} |\n`);
    }
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
