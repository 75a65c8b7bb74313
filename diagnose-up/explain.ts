/** From evidence to explanations. */
import type { Evidence } from "./evidence";
import { gates, type Explanation } from "./explanation";
import { driver, image, nodeStarting, placement, poolFull } from "./from-cluster";
import { apiDisabled, permission, quota, stockout } from "./from-google";
import { fieldConflict, lock } from "./from-pulumi";
import { iam, model } from "./from-triton";

const readers = [
  ...[lock, apiDisabled, permission, quota, stockout, poolFull, placement, nodeStarting],
  ...[driver, image, iam, model, fieldConflict],
];

/**
 * Why the deployment does not get ready, the first gate first. Empty when nothing in the evidence says so: then either all
 * is well or the reason is one that this module does not know.
 */
export function explain(evidence: Evidence): Explanation[] {
  const found = readers.flatMap((reader) => reader(evidence) ?? []);
  // A pod that waits for a machine is "not placed" too; the more exact gate says it all.
  const exact = found.some((one) => ["quota", "stockout", "pool-full", "driver"].includes(one.gate));
  return found
    .filter((one) => !(exact && (one.gate === "placement" || one.gate === "node-starting")))
    .sort((a, b) => gates.indexOf(a.gate) - gates.indexOf(b.gate));
}
