import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { renderReport } from "../../../tuning/report/render-report";
import { buildResult } from "../../../tuning/results/build-result";
import type { Manifest } from "../../../tuning/results/manifest";
import type { Result } from "../../../tuning/results/result-schema";
import { context, failedOutcome, outcomes, variants } from "../fixtures/outcomes";
import { manifest } from "../results/manifest-fixture";

const price = { usdPerReplicaHour: 0.73, asOf: "2026-02" };
const cost = { usd: 0.1234, usdPerHour: 1.28, maxUsd: 5, asOf: "2026-02" };
const full = buildResult(outcomes, { ...context, goalRatePerS: 1500, price, cost, notes: ["a note"] });
const page = renderReport(full, manifest);

/** What a reader sees: no tags, entities resolved, spaces joined. */
function textOf(html: string): string {
  return html
    .replaceAll(/<(style|script)>[\s\S]*?<\/\1>/g, "")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&#39;", "'")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&")
    .replaceAll(/[\s\u00a0]+/g, " ")
    .replaceAll(" ,", ",");
}

/** The same value with every text (not the members' names that the schema fixes) changed. */
function withTexts<T>(value: T, change: (text: string) => string): T {
  const walk = (node: unknown, name: string): unknown => {
    if (typeof node === "string") return fixedTexts.has(name) ? node : change(node);
    if (Array.isArray(node)) return node.map((item) => walk(item, name));
    if (typeof node !== "object" || node === null) return node;
    return Object.fromEntries(
      Object.entries(node).map(([key, member]) => [
        name === "evidence" ? change(key) : key,
        walk(member, key),
      ]),
    );
  };
  return walk(value, "") as T;
}

/** Texts with a fixed set of values or form. */
const fixedTexts = new Set([
  "cause",
  "verdict",
  "purpose",
  "precision",
  "kind",
  "load",
  "answer",
  "startedAt",
]);

describe("the page", () => {
  const text = textOf(page);

  it("says what is known of the GPUs, and what is not", () => {
    const device = { uuid: "GPU-1", name: null, powerLimitW: 70, clocksMHz: null };
    const gpu = {
      devices: [device],
      driver: null,
      machineImage: "COS 117",
      notKnown: "Triton does not tell them",
    };
    const known = textOf(renderReport(full, { ...manifest, gpu }));
    expect(known).toContain("GPU power limit 70 W Servers' machines COS 117");
    expect(known).toContain("GPU driver, clocks not known: Triton does not tell them");
    expect(text).not.toContain("GPU driver");
  });

  it("says how a server became warm, and that it did not", () => {
    const warmUp = { seconds: 75, windows: 4, firstP95Ms: 60_000, lastP95Ms: 31, settled: true };
    const watched = textOf(
      renderReport(buildResult(outcomes, { ...context, warmUpOf: () => warmUp }), manifest),
    );
    expect(watched).toContain(
      "Warm-up settled after 1 min 15 s of short loads (p95 60,000 ms at first, 31.0 ms at last)",
    );
    const cold = buildResult(outcomes, { ...context, warmUpOf: () => ({ ...warmUp, settled: false }) });
    expect(cold.variants[0]!.note).toMatch(/did not settle within 75 s/);
  });

  it("says what the sweep cost, only where machines are paid for by the hour", () => {
    expect(text).toContain("cost $0.12");
    expect(text).toContain("$0.12 of $5.00 allowed, at $1.28 an hour for all machines");
    expect(textOf(renderReport(buildResult(outcomes, context), manifest))).not.toContain("$");
  });

  it("gives the answer in words, with its certainty and the reason", () => {
    expect(page).toContain("<title>2,274 requests/s with tftrt_int8_bs16_count4 (p95 ≤ 100\u00a0ms)</title>");
    expect(text).toContain("With 95 % confidence the limit lies between 2,235 and 2,306 requests/s");
    expect(text).toMatch(/Run it at 2,210\/s holds the SLO with 99 % confidence/);
    expect(text).toMatch(/leaves more room on the GPU \(\d\d % busy, not \d\d %\)/);
    expect(text).toContain("The goal of 1,500 requests/s is reached by tftrt_int8_bs16_count4");
  });

  it("says in plain sight that the T4 is simulated and time dilated", () => {
    const top = text.slice(0, text.indexOf("All variants"));
    expect(top).toContain("simulated T4");
    expect(top).toContain("time dilated up to 3.2×");
    expect(top).toContain("not from a GPU");
  });

  it("says neither of a real server in real time", () => {
    const real = { ...full, simulated: false, timeDilation: 1 };
    const top = textOf(renderReport(real, manifest)).split("All variants")[0];
    expect(/simulated|dilated|slower/i.exec(top ?? "")).toBeNull();
  });

  it("compares every variant with its published figure", () => {
    for (const { name } of variants) expect(text).toContain(name);
    expect(text).toMatch(/original .*247 243 to 250 253 −2\.4 %/);
    expect(text).toMatch(/1,500 goal reached/);
    expect(text).toContain(
      "UINT8 input instead of FP32 (a quarter of the bytes): +31 %, to 2,980/s predicted",
    );
  });

  it("shows every trial with its verdict and reason", () => {
    const rows = page.match(/<td class="verdict">/g) ?? [];
    expect(rows).toHaveLength(full.variants.reduce((sum, variant) => sum + variant.trials.length, 0));
    expect(text).toContain("the queue grows through the whole window: saturated");
  });

  it("tells how to apply the winner, how the number is made and where it comes from", () => {
    expect(text).toContain("pulumi config set variant tftrt_int8_bs16_count4 pulumi up");
    expect(text).toContain(
      "An autoscaler should add one at 1,819 requests/s per replica (80 % of the SLO rate",
    );
    expect(text).toContain("batch means");
    expect(text).toContain("nearest rank");
    expect(text).toContain(manifest.host.cpuModel);
    expect(text).toContain("a note");
    expect(text).toContain("$0.73 per replica and hour");
  });

  it("links to the dashboard at the time of the sweep, where the target has one", () => {
    const on = (dashboardUrl: string | null, endedAt = manifest.endedAt): Manifest => ({
      ...{ ...manifest, target: { ...manifest.target, dashboardUrl }, startedAt: "2026-11-30T10:00:00.000Z" },
      endedAt,
    });
    const grafana = "http://localhost:3000/d/triton-tuning";
    const ended = renderReport(full, on(grafana, "2026-11-30T11:00:00.000Z"));
    expect(ended).toContain(`href="${grafana}?from=1796032800000&amp;to=1796036460000"`);
    // Still running: as far as the result goes.
    const untilMs = Math.ceil(Date.parse(full.startedAt) + full.elapsedS * 1000) + 60_000;
    expect(renderReport(full, on(grafana, null))).toContain(`to=${untilMs}"`);
    for (const none of [null, "javascript:alert(1)"]) {
      expect(renderReport(full, on(none))).not.toContain("Grafana");
      expect(renderReport(full, on(none))).not.toContain("javascript:");
    }
    expect(page).not.toContain("Grafana");
  });

  it("needs no network and runs only its own script", () => {
    expect(page).not.toMatch(/(src|href)="(?!#)/);
    expect(page).not.toMatch(/@import|url\((?!#)/);
    expect(page).not.toMatch(/ style="| on[a-z]+="/);
    const policy = /content="(default-src[^"]*)"/.exec(page)?.[1]?.replaceAll("&#39;", "'") ?? "";
    for (const [element, directive] of [
      ["style", "style-src"],
      ["script", "script-src"],
    ] as const) {
      const content = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(page)?.[1] ?? "";
      const hash = createHash("sha256").update(content).digest("base64");
      expect(content.length).toBeGreaterThan(100);
      expect(policy).toContain(`${directive} 'sha256-${hash}'`);
    }
  });

  it("has balanced tags and unique ids", () => {
    const body = page.replaceAll(/<(style|script)>[\s\S]*?<\/\1>/g, "").replace("<!doctype html>", "");
    const open: string[] = [];
    for (const [, closing, name = "", , selfClosing] of body.matchAll(
      /<(\/?)([a-zA-Z][\w-]*)([^>]*?)(\/?)>/g,
    )) {
      if (["meta", "br"].includes(name) || selfClosing) continue;
      if (closing) expect(open.pop()).toBe(name);
      else open.push(name);
    }
    expect(open).toEqual([]);
    const ids = [...body.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, used] of body.matchAll(/aria-labelledby="([^"]*)"/g))
      for (const id of (used ?? "").split(" ")) expect(ids).toContain(id);
  });
});

describe("hostile texts", () => {
  const attacks = [
    `<script>alert(1)</script>`,
    `"><img src=x onerror=alert(1)>`,
    `' onmouseover='alert(1)`,
    `</style></title><svg onload=alert(1)>`,
    `&lt;b&gt; & <!--`,
    `\${alert(1)} \`x\``,
  ];

  it.each(attacks)("%s changes no tag, wherever it stands", (attack) => {
    const render = (change: (text: string) => string) =>
      renderReport(withTexts<Result>(full, change), withTexts<Manifest>(manifest, change));
    // The harmless text has the same length, so that nothing but its characters differs.
    const harmless = render((text) => text + "x".repeat(attack.length));
    const hostile = render((text) => text + attack);
    const tags = (html: string) => html.match(/<\/?[a-zA-Z!][\w-]*/g);
    const attributes = (html: string) => html.match(/ [a-z-]+="/g);
    expect(tags(hostile)).toEqual(tags(harmless));
    expect(attributes(hostile)).toEqual(attributes(harmless));
    expect(textOf(hostile)).toContain(`tftrt_int8_bs16_count4${attack}`.replaceAll(/\s+/g, " "));
  });
});

describe("sweeps that did not go well", () => {
  it("shows that no variant held the SLO, and why", () => {
    const none = buildResult(
      variants.map((variant) => failedOutcome(variant.name, "even one request at a time takes 130 ms")),
      context,
    );
    const text = textOf(renderReport(none, null));
    expect(text).toContain("No variant held p95 ≤ 100 ms");
    expect(text).toContain("even one request at a time takes 130 ms");
    expect(text).toContain("held at no rate");
    expect(text).not.toContain("pulumi config set");
  });

  it("says that it ended early and what is missing", () => {
    const partial = buildResult(outcomes.slice(0, 6), { ...context, endedEarly: "interrupted" });
    expect(textOf(renderReport(partial, manifest))).toContain(
      "This sweep is incomplete. Interrupted. Not measured: tftrt_int8_bs16_count4.",
    );
  });

  it("can be drawn without any outcome", () => {
    const empty = buildResult([], { ...context, endedEarly: "the server died" });
    expect(textOf(renderReport(empty, manifest))).toContain("The server died.");
  });

  it("says that metrics are absent instead of drawing zeros", () => {
    const blind: Result = {
      ...full,
      variants: full.variants.map((variant) => ({
        ...variant,
        gpuBusy: null,
        meanBatch: null,
        trials: variant.trials.map((trial) => ({ ...trial, gpuBusy: null, meanBatch: null })),
      })),
    };
    const text = textOf(renderReport(blind, manifest));
    expect(text).toContain("GPU metrics absent");
    expect(text).toContain("Batch sizes absent");
    expect(text).not.toMatch(/GPU busy 0 %/);
  });

  it("marks invalid trials and leaves them out of the curves", () => {
    const [first, ...rest] = full.variants;
    const [trial, ...trials] = first?.trials.slice(3) ?? [];
    if (!first || !trial) throw new Error("no fixture");
    const invalid = { ...trial, valid: false, reason: "a worker was lost" };
    const count = (result: Result) => renderReport(result, null).match(/data-tip/g)?.length ?? 0;
    const shown = { ...full, variants: [{ ...first, trials: [trial, ...trials] }, ...rest] };
    const hidden = { ...full, variants: [{ ...first, trials: [invalid, ...trials] }, ...rest] };
    // Latency in two sizes, batch and GPU in two sizes each.
    expect(count(shown) - count(hidden)).toBe(6);
    expect(textOf(renderReport(hidden, null))).toContain("invalid a worker was lost");
  });
});
