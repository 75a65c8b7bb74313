/** A measurement as one HTML file that needs no network: verdict, figures, the console's charts. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunSummary } from "../history/history-store";
import type { LoadSecond } from "../history/load-second";
import { describeLoad } from "../load-profile";
import { busyWaitWords } from "../busy-wait-words";

const read = (...path: string[]): string => readFileSync(join(...path), "utf8");

export function toHtmlReport(run: RunSummary, seconds: readonly LoadSecond[]): string {
  const publicFolder = join(__dirname, "public");
  const uplotFolder = join(require.resolve("uplot"), "..");
  const title = `${describeLoad(run.spec.shape)} on ${run.spec.modelName}`;
  const data = { boundMs: run.spec.sloBoundMs, seconds };
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escaped(title)}</title>
<style>${read(uplotFolder, "uPlot.min.css")}
${read(publicFolder, "console.css")}</style></head>
<body><main class="report"><h1>${escaped(title)}</h1>
<p>${escaped(new Date(run.startedUnixMs).toISOString())}, ${escaped(run.spec.addresses.join(", "))}, measurement ${escaped(run.id)}</p>
<table class="facts"><tbody>${rowsOf(run)
    .map(([key, value]) => `<tr><th scope="row">${escaped(key)}</th><td>${escaped(value)}</td></tr>`)
    .join("")}</tbody></table>
<div id="charts" class="charts"></div></main>
<script>${read(uplotFolder, "uPlot.iife.min.js")}</script>
<script>${read(publicFolder, "charts.js")}</script>
<script type="application/json" id="data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>
<script>(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = LoadCharts.create(document.getElementById("charts"));
  charts.setObjective(data.boundMs);
  charts.setSeconds(data.seconds);
})();</script>
</body></html>
`;
}

function rowsOf({ state, error, result, spec, changes }: RunSummary): [string, string][] {
  if (result === null) return [["outcome", `${state}: ${error ?? ""}`]];
  const { total, response, service, health } = result;
  const share = total.planned === 0 ? "-" : `${((100 * total.ok) / total.planned).toFixed(2)} %`;
  const ms = (value: number | null): string =>
    value === null || Number.isNaN(value) ? "-" : `${value.toFixed(value < 10 ? 2 : 1)} ms`;
  const times = ({ p50Ms, p95Ms, p99Ms, maxMs }: typeof response): string =>
    `p50 ${ms(p50Ms)}, p95 ${ms(p95Ms)}, p99 ${ms(p99Ms)}, max ${ms(maxMs)}`;
  return [
    ["within the bound", `${share} of ${total.planned} requests within ${spec.sloBoundMs} ms`],
    ["response time", times(response)],
    ["service time", times(service)],
    ["not answered in time", `${total.late} late (${total.shed} of them shed), ${total.failed} failed`],
    [
      "client",
      `lateness p99 ${ms(health.latenessP99Ms)}, event loop p99 ${ms(health.loopDelayP99Ms)}, ${result.workers} workers${busyWaitWords(health)}`,
    ],
    ["valid", result.valid ? "yes" : `no: ${result.invalidReasons.join("; ")}`],
    ...(result.stop
      ? [["stopped", `after ${result.stop.atS.toFixed(1)} s: ${result.stop.reason}`] as [string, string]]
      : []),
    ...changes.map(({ atS, shape }): [string, string] => [
      `changed at ${atS.toFixed(1)} s`,
      describeLoad(shape),
    ]),
    ...Object.entries(result.errors).map(([kind, count]): [string, string] => [
      `error ${kind}`,
      `${count}: ${result.errorMessages?.[kind] ?? ""}`,
    ]),
    ...(result.warnings ?? []).map((warning): [string, string] => ["warning", warning]),
  ];
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
