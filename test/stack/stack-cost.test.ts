/** Cost of the stack by phase, and the table of the walk-through that shows it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { stackCost } from "../../pricing/cost";
import { loadPrices } from "../../pricing/prices";
import { parseConfig } from "../../stack/config";
import { stackSize, type StackPhase } from "../../stack/stack-cost";
import { readStackFile } from "../../stack/stack-file";

const folder = join(__dirname, "../..");
const phases: readonly StackPhase[] = ["asleep", "serving", "sweeping", "converting"];
const configOf = (stack: string, more = {}) =>
  parseConfig({ ...readStackFile(folder, stack), project: "my-project", asleep: "false", ...more });

function usdPerH(stack: string, phase: StackPhase): number {
  return stackCost(loadPrices(), stackSize(configOf(stack), phase)).reduce(
    (sum, line) => sum + line.usdPerH,
    0,
  );
}

describe.each(["dev", "prod"])("%s", (stack) => {
  it("costs least asleep and most while it sweeps or converts", () => {
    const [asleep = 0, serving = 0, sweeping = 0, converting = 0] = phases.map((phase) =>
      usdPerH(stack, phase),
    );
    expect(asleep).toBeLessThan(serving);
    expect(serving).toBeLessThan(sweeping);
    expect(asleep).toBeLessThan(converting);
  });
});

it("counts the machines of each phase", () => {
  const pools = (phase: StackPhase) =>
    stackSize(configOf("prod"), phase).pools.map(({ name, nodes }) => [name, nodes]);
  expect(pools("asleep")).toEqual([["system", 1]]);
  expect(pools("serving")).toEqual([
    ["system", 1],
    ["gpu", 2],
  ]);
  expect(pools("sweeping")).toEqual([
    ["system", 1],
    ["gpu", 2],
    ["load", 3],
  ]);
  expect(pools("converting")).toEqual([
    ["system", 1],
    ["converter", 1],
  ]);
});

it("counts no cluster and no NAT that somebody else pays", () => {
  const size = stackSize(configOf("dev", { existingCluster: "c", conversionVm: "false" }), "serving");
  expect(size).toMatchObject({ clusters: 0, nat: undefined });
});

it("is what the walk-through says", () => {
  const text = readFileSync(join(folder, "docs/cloud-walk-through.md"), "utf8");
  const rows = [...text.matchAll(/^\| (asleep|serving|sweeping|converting) \| ([\d.]+) \| ([\d.]+) \|$/gm)];
  expect(rows.map(([, phase, dev, prod]) => [phase, dev, prod])).toEqual(
    phases.map((phase) => [phase, usdPerH("dev", phase).toFixed(2), usdPerH("prod", phase).toFixed(2)]),
  );
});
