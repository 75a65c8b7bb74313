/** What a result says about the replicas' shares. */
import { expect, it } from "vitest";
import { toLoadResult } from "../../loadgen/merge-result";
import { Tally } from "../../loadgen/tally";
import { loadSpec } from "./support/spec";

const addresses = ["a:1", "b:1", "c:1"];

function warningsOf(answers: readonly number[]): readonly string[] {
  const measured = new Tally();
  for (const [i, count] of answers.entries())
    for (let n = 0; n < count; n++) {
      measured.sent(0, true);
      measured.ended({
        ...{ interval: 0, ending: "ok", responseUs: 1000, serviceUs: 1000 },
        ...{ address: addresses[i]!, error: undefined },
      });
    }
  const { warnings = [], perAddress } = toLoadResult({
    spec: loadSpec({ addresses, imageFolder: "/images" }),
    ...{ measured, healths: [], faults: [], workers: 1, stop: null, changes: [] },
    ...{ measuredFromUnixMs: 0, measuredToUnixMs: 400 },
  });
  expect(perAddress).toEqual(Object.fromEntries(addresses.map((address, i) => [address, answers[i]])));
  return warnings;
}

it.each<[string, readonly number[]]>([
  ["even", [100, 100, 100]],
  ["nearly even", [100, 95, 90]],
  ["few requests, where one more is chance", [40, 20, 0]],
])("replicas: %s: no warning", (_, answers) => expect(warningsOf(answers)).toEqual([]));

it("a replica that answers much less than the others is named, with both counts; so is one that answers nothing", () => {
  expect(warningsOf([100, 89, 0])).toEqual([
    "uneven replicas: b:1 answered 89 requests, another one 100, though all were sent alike",
    "uneven replicas: c:1 answered 0 requests, another one 100, though all were sent alike",
  ]);
});
