/** What a console is told when it opens stays small, however long and many the measurements were. */
import { mkdtempSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ConsoleHub, type Snapshot } from "../../loadgen/console/console-hub";
import type { Controller } from "../../loadgen/controller";
import { Histogram } from "../../loadgen/histogram";
import { HistoryStore } from "../../loadgen/history/history-store";
import { MOST_CHART_SECONDS, type LoadSecond } from "../../loadgen/history/load-second";
import { toLoadResult } from "../../loadgen/merge-result";
import { Tally } from "../../loadgen/tally";
import { loadSpec } from "./support/spec";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "console-hub-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const nobody = { workers: () => [] } as unknown as Controller;
const second = (atS: number): LoadSecond => ({
  ...{ atS, unixMs: 1000 * atS, phase: "measuring", ratePerS: 400, answered: 400, failed: 0, shed: 0 },
  ...{ p50Ms: 20, p95Ms: 40, p99Ms: 50, latenessP99Ms: 1, inFlight: 9, users: null, offeredPerS: 400 },
  ...{ workers: 1, perAddress: { "a:1": 400 * atS }, server: null },
});

/** The event that a console gets first, and its length. */
function opened(hub: ConsoleHub): { readonly snapshot: Snapshot; readonly bytes: number } {
  let written = "";
  const response = { on: () => undefined, end: () => undefined, write: (text: string) => (written += text) };
  hub.add(response as unknown as ServerResponse);
  const [, data = ""] = /^event: snapshot\ndata: (.*)\n\n$/s.exec(written) ?? [];
  return { snapshot: JSON.parse(data) as Snapshot, bytes: written.length };
}

it("two hundred measurements of ten minutes, some of them of a hundred thousand recorded arrivals", () => {
  const store = new HistoryStore(folder);
  const measured = new Tally();
  for (let i = 0; i < 20_000; i++) {
    const responseUs = 10_000 + 7 * i;
    measured.sent(100, true);
    measured.ended({
      ...{ interval: i % 600, ending: "ok", responseUs, serviceUs: responseUs, address: "a:1" },
      error: undefined,
    });
  }
  const atS = Array.from({ length: 100_000 }, (_, i) => i / 200);
  for (let i = 0; i < 200; i++) {
    const shape = i % 20 === 0 ? ({ kind: "recorded", atS } as const) : undefined;
    const spec = loadSpec({
      ...{ id: `run-${i}`, addresses: ["a:1"], imageFolder: "/images", measureS: 600 },
      ...(shape && { shape }),
    });
    store.started(spec);
    const result = toLoadResult({
      ...{ spec, measured, healths: [], faults: [], workers: 1, stop: null, changes: [] },
      ...{ measuredFromUnixMs: 0, measuredToUnixMs: 600_000 },
    });
    store.ended(spec.id, result, null);
  }
  const hub = new ConsoleHub(store, () => nobody);
  const { snapshot, bytes } = opened(hub);
  hub.close();
  expect(snapshot.runs).toHaveLength(200);
  expect(snapshot.runs[0]!.spec.shape).toEqual({ kind: "recorded", arrivals: 100_000 });
  expect(snapshot.runs[199]!.result).toMatchObject({ valid: true, total: { planned: 20_000 } });
  expect(bytes).toBeLessThan(1_000_000);
});

it("a measurement of a day: its whole course, no more seconds than a chart holds, the newest among them", () => {
  const store = new HistoryStore(folder);
  const hub = new ConsoleHub(store, () => nobody);
  const spec = loadSpec({ id: "day", addresses: ["a:1"], imageFolder: "/images", measureS: 86_400 });
  hub.started(spec);
  const response = new Histogram().toSparse();
  const lengthS = 20_001;
  for (let atS = 1; atS <= lengthS; atS++) hub.second(spec, { second: second(atS), response });
  const { snapshot } = opened(hub);
  expect(snapshot.mostChartSeconds).toBe(MOST_CHART_SECONDS);
  const live = snapshot.seconds.map(({ atS }) => atS);
  hub.close();
  expect(live.length).toBeLessThanOrEqual(MOST_CHART_SECONDS);
  expect(live.length).toBeGreaterThan(MOST_CHART_SECONDS / 2);
  expect(live.at(-1)).toBe(lengthS);
  expect(live[0]).toBeLessThan(10);
  expect(live).toEqual([...live].sort((one, other) => one - other));
  // As after a restart of the controller.
  const again = new ConsoleHub(new HistoryStore(folder), () => nobody);
  expect(opened(again).snapshot.seconds.map(({ atS }) => atS)).toEqual(live);
  again.close();
});
