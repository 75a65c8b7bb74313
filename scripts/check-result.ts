/** `check-result DIR`: reads a run's result.json by its schema and fails unless the sweep is complete; used after the CI's short sweep. */
import { readResult } from "../tuning/results/results-folder";

const folder = process.argv[2];
if (folder === undefined) {
  process.stderr.write("usage: check-result DIR\n");
  process.exit(2);
}
const result = readResult(folder);
const complaints = [
  ...(result.endedEarly === null ? [] : [`the sweep ended early: ${result.endedEarly}`]),
  ...result.variants.filter(({ sloRate }) => sloRate === null).map(({ name }) => `${name} has no SLO rate`),
  // On the simulated T4 it is always known.
  ...(result.simulated
    ? result.variants
        .filter(({ sloRate, standAlone }) => sloRate !== null && standAlone?.servedShare == null)
        .map(({ name }) => `${name} has no share of its own speed`)
    : []),
  ...(result.recommendation.variant === null ? ["nothing is recommended"] : []),
];
for (const complaint of complaints) process.stderr.write(`${complaint}\n`);
for (const { name, sloRate, diagnosis } of result.variants) {
  process.stdout.write(`${name}: ${sloRate?.estimate.toFixed(0) ?? "-"}/s, ${diagnosis.cause}\n`);
}
process.exit(complaints.length === 0 ? 0 : 1);
