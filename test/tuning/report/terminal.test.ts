import { describe, expect, it } from "vitest";
import { painter, printable, wantsColour } from "../../../tuning/report/ansi";
import { SweepClock } from "../../../tuning/report/eta";
import { LiveView } from "../../../tuning/report/live-view";
import { renderSummary } from "../../../tuning/report/terminal";
import { buildResult } from "../../../tuning/results/build-result";
import type { SweepEvent } from "../../../tuning/sweep";
import { context, failedOutcome, outcomes, variants } from "../fixtures/outcomes";

const escape = "\u001b";

describe("renderSummary", () => {
  const result = buildResult(outcomes, { ...context, goalRatePerS: 1500, notes: ["a note"] });
  const text = renderSummary(result, "results/x/report.html", false);

  it("aligns a table of all variants, best first", () => {
    const lines = text.split("\n");
    const head = lines.findIndex((line) => line.includes("SLO rate"));
    const rows = lines.slice(head + 1, head + 8);
    expect(rows[0]).toMatch(
      /^\* tftrt_int8_bs16_count4 {5}2,274 {2}2,235\.\.2,306 {3}2,210 {2}2,237 \(\+1\.7 %\) +[\d.]+ ms +16\.0 +\d\d % {2}wire-bound$/,
    );
    expect(rows[1]).toMatch(/^= tftrt_int8_bs8_count4 .* 1,500 \(goal\) /);
    const causeColumn = (lines[head] ?? "").indexOf("limited by");
    for (const row of rows) expect(row.slice(causeColumn)).toMatch(/^(wire|gpu|host)-bound$/);
  });

  it("says the answer, the goal, the notes and where the report is", () => {
    expect(text).toContain(
      "tftrt_int8_bs16_count4 holds p95 ≤ 100 ms up to 2,274 requests/s (95 % interval 2,235 to 2,306).",
    );
    expect(text).toContain("Run it at  2,210 requests/s");
    expect(text).toContain("[simulated T4, time dilated up to 3.2×]");
    expect(text).toContain("The goal of 1,500 requests/s is reached");
    expect(text).toContain("Note: a note");
    expect(text).toContain("Report: results/x/report.html");
  });

  it("says what the sweep cost, where machines are paid for by the hour", () => {
    const cost = { usd: 0.1234, usdPerHour: 1.28, maxUsd: 5, asOf: "2026-11" };
    const paid = renderSummary(buildResult(outcomes, { ...context, cost }), null, false);
    expect(paid.split("\n")[0]).toContain("5 min 12 s, $0.12 [");
    expect(text).not.toContain("$");
  });

  it("says what several servers hold together, where that was measured", () => {
    const sloRate = { estimate: 4300, low: 4200, high: 4400, level: 0.95 };
    const scaling = [{ replicas: 2, sloRate, factor: 1.9 }];
    expect(renderSummary(buildResult(outcomes, { ...context, scaling }), null, false)).toContain(
      "Scaling: 2 servers hold 4,300 requests/s together (4,200 to 4,400), 1.9× one of them.",
    );
  });

  it("uses colours only when asked", () => {
    expect(text).not.toContain(escape);
    const coloured = renderSummary(result, null, true);
    expect(coloured).toContain(`${escape}[1m`);
    expect(coloured.replaceAll(/\p{Cc}\[\d+m/gu, "")).toBe(renderSummary(result, null, false));
  });

  it("lets no name act on the terminal", () => {
    const [first, ...rest] = result.variants;
    if (!first) throw new Error("no fixture");
    const evil = { ...first, name: `a${escape}[2J\u0007\r\n\u202e`, note: `${escape}]0;x` };
    const shown = renderSummary({ ...result, variants: [evil, ...rest] }, null, false);
    expect(shown).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
    expect(shown).toContain("a?[2J????");
  });

  it("says that nothing held, and what is missing", () => {
    const [firstVariant] = variants;
    const none = buildResult([failedOutcome(firstVariant?.name ?? "", "too slow")], {
      ...context,
      endedEarly: "the server died",
    });
    const shown = renderSummary(none, null, false);
    expect(shown).toContain("No variant held p95 ≤ 100 ms.");
    expect(shown).toContain("Note on original: too slow");
    expect(shown).toContain("Incomplete: the server died. Not measured: tftrt_fp32, ");
    const unknown = renderSummary(
      buildResult([], { ...context, endedEarly: "it cost too much" }),
      null,
      false,
    );
    expect(unknown).toContain("Ended before it was known which rate holds p95 ≤ 100 ms.");
    expect(unknown).not.toContain("No variant held");
  });
});

describe("wantsColour", () => {
  it.each([
    [true, {}, true],
    [false, {}, false],
    [undefined, {}, false],
    [true, { NO_COLOR: "1" }, false],
    [true, { NO_COLOR: "" }, true],
    [true, { TERM: "dumb" }, false],
  ])("%s %o", (isTTY, environment, expected) => {
    expect(wantsColour(isTTY === undefined ? {} : { isTTY }, environment)).toBe(expected);
  });

  it("painter and printable do what they say", () => {
    expect(painter(false)("red", "x")).toBe("x");
    expect(painter(true)("red", "x")).toBe(`${escape}[31mx${escape}[0m`);
    expect(printable("a\u00a0b\tc")).toBe("a b?c");
  });
});

describe("SweepClock", () => {
  it("takes the mean of the measured variants, not of those from the log", () => {
    let now = 0;
    const clock = new SweepClock(() => now);
    clock.variantStarted(0, 4);
    clock.variantFinished();
    expect(clock.leftS()).toBeNull();
    clock.variantStarted(1, 4);
    clock.trialMeasured();
    now = 60;
    clock.variantFinished();
    clock.variantStarted(2, 4);
    now = 70;
    expect(clock.leftS()).toBe(50 + 60);
    now = 200;
    expect(clock.leftS()).toBe(60);
  });
});

describe("LiveView", () => {
  const outcome = outcomes[1];
  const variant = variants[1];
  const trials = outcome?.trials.slice(3) ?? [];
  const [first] = trials;
  if (!outcome || !variant || !first) throw new Error("no fixture");

  function show(stream: { isTTY?: boolean; columns?: number }, events: readonly SweepEvent[]) {
    let text = "";
    let now = 0;
    const view = new LiveView(
      { ...stream, write: (chunk) => (text += chunk) },
      { colour: false, nowS: () => (now += 10) },
    );
    for (const event of events) view.onEvent(event);
    view.close();
    return text;
  }
  const started: SweepEvent = { kind: "variant-started", variant, index: 1, of: 7 };
  const finished = trials.map(({ spec, result }): SweepEvent => ({
    kind: "trial-finished",
    spec,
    result,
    fromLog: false,
  }));
  const progress: SweepEvent = {
    kind: "trial-progress",
    spec: first.spec,
    progress: { elapsedS: 4.2, totalS: 10, ratePerS: 219, p95Ms: 43.2 },
  };

  it("writes one line a trial into a file, without control characters", () => {
    const text = show({}, [
      started,
      { kind: "trial-started", spec: first.spec, attempt: 1 },
      progress,
      ...finished,
      { kind: "variant-finished", outcome },
    ]);
    const lines = text.trimEnd().split("\n");
    expect(lines).toHaveLength(trials.length + 1);
    expect(lines[0]).toMatch(
      /^\[2\/7\] tftrt_fp32 {2}locate 220\/s .*p95 [\d.]+ ms {2}missed 0\.\d % {2}(pass|fail|undecided)/,
    );
    expect(lines.at(-1)).toBe("[2/7] tftrt_fp32  SLO rate 366/s (360..371), run at 356, gpu-bound");
    expect(text).not.toMatch(/(?!\n)[\p{Cc}\u00a0]/u);
  });

  it("narrows the bracket with the verdicts", () => {
    const text = show({}, [started, ...finished]);
    expect(text.split("\n")[1]).toMatch(/limit in \d+\.\.\?/);
    expect(text).toMatch(/limit in \d+\.\.\d+/);
  });

  it("says why a trial is repeated", () => {
    const text = show({}, [
      started,
      { kind: "trial-failed", spec: first.spec, reason: "a worker was lost", willRetry: true },
    ]);
    expect(text).toBe("[2/7] tftrt_fp32  locate 220/s  invalid: a worker was lost; trying again\n");
  });

  it("marks what came from the point log", () => {
    const text = show({}, [
      started,
      { kind: "trial-finished", spec: first.spec, result: first.result, fromLog: true },
    ]);
    expect(text).toContain("(from the point log)");
  });

  it("rewrites one line on a terminal and leaves only the outcomes", () => {
    const text = show({ isTTY: true, columns: 200 }, [
      started,
      progress,
      ...finished,
      progress,
      { kind: "variant-finished", outcome },
    ]);
    expect(text.split("\n")).toHaveLength(2);
    expect(text).toContain("4/10 s  now 219/s  p95 43.2 ms");
    expect(text.endsWith("gpu-bound\n")).toBe(true);
  });

  it("shows what the sweep has cost so far", () => {
    let text = "";
    const stream = { isTTY: true, columns: 200, write: (chunk: string) => (text += chunk) };
    const view = new LiveView(stream, { colour: false, nowS: () => 0 });
    view.showCost(() => 0.567);
    view.onEvent(started);
    view.onEvent(progress);
    expect(text).toContain("p95 43.2 ms  $0.57");
  });

  it.each([20, 40, 80])("never wraps the live line at %s columns", (columns) => {
    const text = show({ isTTY: true, columns }, [started, ...finished, progress]);
    for (const line of text.split("\r\u001b[2K")) expect(line.length).toBeLessThan(columns);
  });

  it("shows an outcome without a rate", () => {
    const failed: SweepEvent = { kind: "variant-finished", outcome: failedOutcome("tftrt_fp32", "too slow") };
    expect(show({}, [started, failed])).toBe("[2/7] tftrt_fp32  no SLO rate: too slow\n");
  });
});
