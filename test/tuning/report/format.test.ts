import { describe, expect, it } from "vitest";
import {
  formatDuration,
  formatFactor,
  formatGain,
  formatMs,
  formatQuantile,
  formatRate,
  formatShare,
  formatSlo,
  keepUnits,
  noValue,
} from "../../../tuning/report/format";
import { escapeHtml, html } from "../../../tuning/report/html";

const spaced = (text: string) => text.replaceAll("\u00a0", " ");

describe("figures", () => {
  it.each([
    [formatRate(2274.4), "2,274"],
    [formatRate(99.44), "99.4"],
    [formatRate(3.456), "3.46"],
    [formatRate(null), noValue],
    [formatMs(97.04), "97.0 ms"],
    [formatMs(1234.5), "1,235 ms"],
    [formatMs(0.256), "0.26 ms"],
    [formatMs(null), noValue],
    [formatMs(NaN), noValue],
    [formatRate(Infinity), noValue],
    [formatShare(0.756), "76 %"],
    [formatShare(0.0123, 1), "1.2 %"],
    [formatGain(0.314), "+31 %"],
    [formatGain(-0.0241), "−2.4 %"],
    [formatGain(0.0001), "±0 %"],
    [formatGain(0), "±0 %"],
    [formatFactor(3.2), "3.2×"],
    [formatFactor(2), "2×"],
    [formatDuration(42.4), "42 s"],
    [formatDuration(312), "5 min 12 s"],
    [formatDuration(3779), "1 h 02 min"],
    [formatQuantile(0.95), "p95"],
    [formatQuantile(0.999), "p99.9"],
    [formatSlo({ quantile: 0.99, boundMs: 20 }), "p99 ≤ 20 ms"],
  ])("%s", (actual, expected) => {
    expect(spaced(actual)).toBe(expected);
  });

  it("keeps figures and units together, and nothing else", () => {
    expect(keepUnits("5 % of 602 kB in 100 ms; 3 seeds, 4 msgs")).toBe(
      "5\u00a0% of 602\u00a0kB in 100\u00a0ms; 3 seeds, 4 msgs",
    );
  });
});

describe("html", () => {
  it("escapes texts, keeps its own HTML, joins lists, drops nothing-values but not 0", () => {
    const item = html`<b>${"<&>"}</b>`;
    expect(html`<p title="${"\"'"}">${[item, 0, null, undefined, false, ["x", ["y"]]]}</p>`.text).toBe(
      '<p title="&quot;&#39;"><b>&lt;&amp;&gt;</b>0xy</p>',
    );
  });

  it("escapes every character that can end a text or an attribute", () => {
    expect(escapeHtml(`a&b<c>d"e'f`)).toBe("a&amp;b&lt;c&gt;d&quot;e&#39;f");
  });
});
