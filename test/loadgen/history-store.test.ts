import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HistoryStore } from "../../loadgen/history/history-store";
import type { RecordedSecond } from "../../loadgen/history/load-second";
import { readingBetween, totalsOf } from "../../loadgen/history/server-metrics";
import type { LoadResult, LoadSpec } from "../../loadgen/load-spec";
import { loadSpec } from "./support/spec";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "history-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const spec = (id: string): LoadSpec =>
  loadSpec({
    id,
    addresses: ["a:1"],
    imageFolder: "/images",
    knownAnswers: [{ classIndex: 1, label: "x", score: 1 }],
  });
const second = (atS: number): RecordedSecond => ({
  second: { atS } as RecordedSecond["second"],
  response: { gaps: [1], counts: [2], sumUs: 3, maxUs: 4 },
});
const result = { id: "one", valid: true } as LoadResult;

it("finished measurements and their seconds survive; one that ran is lost, and says so, for good", () => {
  const store = new HistoryStore(folder);
  store.started(spec("one"));
  store.second("one", second(1));
  store.second("one", second(2));
  store.changed("one", { atS: 1, shape: { kind: "constant", ratePerS: 9 } });
  store.ended("one", result, null);
  store.started(spec("../../two: any text / at all"));
  store.second("../../two: any text / at all", second(1));
  for (let restart = 0; restart < 2; restart++) {
    const [one, two] = new HistoryStore(folder).list();
    expect(one).toMatchObject({ id: "one", state: "finished", result, changes: [{ atS: 1 }] });
    expect(two).toMatchObject({
      id: "../../two: any text / at all",
      state: "lost",
      result: null,
      error: "the controller was restarted during the measurement",
    });
    expect(JSON.stringify(one)).not.toContain("knownAnswers");
  }
  const again = new HistoryStore(folder);
  expect(again.seconds("one").map(({ second: { atS } }) => atS)).toEqual([1, 2]);
  expect(again.seconds("one")[0]).toEqual(second(1));
});

it("a line that was being written when the controller died is left out; strangers' files are left alone", () => {
  const store = new HistoryStore(folder);
  store.started(spec("one"));
  store.second("one", second(1));
  const [run] = readdirSync(folder);
  appendFileSync(join(folder, run!, "seconds.jsonl"), '{"second":{"atS":2');
  writeFileSync(join(folder, "README"), "not ours");
  const again = new HistoryStore(folder);
  expect(again.list().map(({ id }) => id)).toEqual(["one"]);
  expect(again.seconds("one")).toHaveLength(1);
  expect(readdirSync(folder)).toContain("README");
});

it("one that could not be run says why; keeps the newest two hundred", () => {
  const store = new HistoryStore(folder);
  for (let i = 0; i < 205; i++) {
    store.started(spec(`run-${i}`));
    store.ended(`run-${i}`, undefined, "no load worker is registered");
  }
  const runs = new HistoryStore(folder).list();
  expect(runs).toHaveLength(200);
  expect(runs.map(({ id }) => id)).not.toContain("run-4");
  expect(runs.at(-1)).toMatchObject({
    id: "run-204",
    state: "failed",
    error: "no load worker is registered",
  });
});

it("a folder that cannot be used is named", () => {
  writeFileSync(join(folder, "file"), "");
  expect(() => new HistoryStore(join(folder, "file"))).toThrow(/state folder .*file cannot be used/);
});

it("server metrics: rates and means between two readings, over all replicas and models", () => {
  const exposition = (requests: number, images: number, batches: number, queueUs: number): string => `
# HELP nv_inference_count Number of inferences
nv_inference_request_success{model="a",version="1"} ${requests}
nv_inference_count{model="a",version="1"} ${images}
nv_inference_exec_count{model="a",version="1"} ${batches}
nv_inference_queue_duration_us{model="a",version="1"} ${queueUs}
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
`;
  const before = totalsOf([exposition(100, 100, 50, 1e6), exposition(0, 0, 0, 0)], 0);
  const after = totalsOf([exposition(160, 160, 60, 1.6e6), exposition(40, 40, 10, 0.4e6)], 2000);
  expect(readingBetween(before, after)).toEqual({ batchesPerS: 10, batchSize: 5, queueMs: 10, gpuBusy: 0.5 });
  expect(readingBetween(after, before)).toBeNull();
  expect(readingBetween(after, after)).toMatchObject({ batchSize: null, queueMs: null });
  expect(readingBetween(totalsOf([""], 0), totalsOf([""], 1000))).toMatchObject({ gpuBusy: null });
});

it("a disk that takes nothing more costs the history of what runs, is said once, and keeps nothing else from going on", () => {
  const warnings: string[] = [];
  const store = new HistoryStore(folder, (line) => warnings.push(line));
  store.started(spec("one"));
  store.second("one", second(1));
  // No file can be made or appended to any more.
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true });
  for (let atS = 2; atS < 9; atS++) store.second("one", second(atS));
  expect(store.ended("one", result, null)).toMatchObject({ state: "finished", result });
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(/^history of one cannot be written, it goes on without: ENOENT/);
  expect(store.get("one")).toMatchObject({ result });
  expect(store.seconds("one")).toEqual([]);
  // Again, with room on the disk.
  store.started(spec("one"));
  store.second("one", second(1));
  expect(store.seconds("one")).toHaveLength(1);
  store.started(spec("two"));
  store.second("two", second(1));
  expect(store.seconds("two")).toHaveLength(1);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "no folder any more");
  expect(store.started(spec("three"))).toMatchObject({ state: "running" });
  store.second("three", second(1));
  expect(warnings).toHaveLength(2);
});

it("what is kept has a size: the oldest go first, also after a restart, and a long one keeps its seconds without histograms", () => {
  const counts = Array.from({ length: 50 }, () => 1);
  const large = (atS: number): RecordedSecond => ({
    ...second(atS),
    response: { gaps: counts, counts, sumUs: 3, maxUs: 4 },
  });
  const limits = { keptBytes: 10_000, runBytes: 3_000 };
  const store = new HistoryStore(folder, undefined, limits);
  for (const id of ["one", "two", "three"]) {
    store.started(spec(id));
    for (let atS = 1; atS <= 30; atS++) store.second(id, large(atS));
    store.ended(id, { ...result, id }, null);
  }
  const seconds = store.seconds("three");
  expect(seconds.map(({ second: { atS } }) => atS)).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
  expect(seconds[0]).toEqual(large(1));
  expect(seconds[29]!.response.counts).toEqual([]);
  const smaller = new HistoryStore(folder, undefined, { ...limits, keptBytes: 5000 });
  expect(smaller.list().map(({ id }) => id)).toContain("three");
  smaller.started(spec("four"));
  expect(smaller.list().map(({ id }) => id)).toEqual(["four"]);
  expect(readdirSync(folder)).toHaveLength(1);
});
