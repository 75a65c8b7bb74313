import { expect, it } from "vitest";
import { busyWaitNotes } from "../../targets/busy-wait";
import { TargetError } from "../../targets/target-error";

const waiting = { busyWaitMs: 2, workers: 1, cores: 2, isServerHere: true };

it("workers that sleep are no matter of the cores, and nothing is said", () => {
  expect(busyWaitNotes({ ...waiting, busyWaitMs: 0, workers: 9 })).toEqual([]);
});

it("workers that wait awake are named in the result, with the cores that they take", () => {
  expect(busyWaitNotes(waiting)).toEqual([
    "the load workers wait awake 2 ms for each planned send (--busy-wait-ms): a core each (1 of 2)",
  ]);
});

it("with no core left for a server on this machine, that is said; elsewhere it is nobody's loss", () => {
  expect(busyWaitNotes({ ...waiting, workers: 2 })[0]).toMatch(/all 2 cores .*the server has to share them/);
  expect(busyWaitNotes({ ...waiting, workers: 2, isServerHere: false })[0]).toMatch(/\(2 of 2\)$/);
});

it("more workers than cores are refused with the way out", () => {
  const ask = (): unknown => busyWaitNotes({ ...waiting, workers: 3 });
  expect(ask).toThrow(TargetError);
  expect(ask).toThrow(/3 workers on 2 cores: ask for 2 or fewer with --workers, or leave it out/);
});
