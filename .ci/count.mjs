// Adds up the test reports of all suites; a step without a report counts as one test. Exit 1 if anything failed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const folder = process.argv[2];
const files = readdirSync(folder);
let passed = 0;
let failed = 0;
let skipped = 0;
const broken = [];
for (const file of files.filter((name) => name.endsWith(".exit"))) {
  const name = file.slice(0, -".exit".length);
  const status = Number(readFileSync(join(folder, file), "utf8"));
  let failedHere = 0;
  if (files.includes(`${name}.json`)) {
    const report = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
    passed += report.numPassedTests;
    failedHere = report.numFailedTests;
    skipped += report.numPendingTests + (report.numTodoTests ?? 0);
  } else if (status === 0) passed += 1;
  // A suite that exits non-zero without a failed test (a crash, a leaked error) has failed all the same.
  if (status !== 0 && failedHere === 0) failedHere = 1;
  failed += failedHere;
  if (failedHere > 0) broken.push(name);
}
if (broken.length > 0) console.log(`failed: ${broken.join(", ")}`);
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exit(failed > 0 ? 1 : 0);
