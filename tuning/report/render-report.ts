/**
 * `report.html`: one file that needs no network, no other file and no script. Drawn from result.json and manifest.json alone, so it
 * can be made again later. Pure but for reading its own style sheet and script.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Manifest } from "../results/manifest";
import type { Result } from "../results/result-schema";
import { gpuBusyChart, meanBatchChart, rateLatencyChart } from "./charts";
import { renderApply, renderFacts, renderMethod } from "./explanation";
import { formatQuantile, formatRate, formatSlo } from "./format";
import {
  recommendedVariant,
  renderAnswer,
  renderGoal,
  renderHeader,
  renderNotices,
  withoutAnswer,
} from "./headline";
import { html, trustedHtml, type Html } from "./html";
import { markerAt } from "./marker";
import { anyStandAlone } from "./stand-alone-text";
import { seriesOf, type VariantSeries } from "./series";
import { renderVariantDetails } from "./variant-details";
import { renderVariantTable } from "./variant-table";

/**
 * The whole page.
 * @param manifest null when there is none (circumstances are then left out)
 */
export function renderReport(result: Result, manifest: Manifest | null): string {
  const all = seriesOf(result);
  const style = readFileSync(join(__dirname, "report.css"), "utf8");
  const script = readFileSync(join(__dirname, "report-page.js"), "utf8");
  // The page runs this one script and loads nothing: whatever a name in the data contains, it cannot act.
  const policy = `default-src 'none'; style-src '${hashSource(style)}'; script-src '${hashSource(script)}'; base-uri 'none'; form-action 'none'`;
  return html`${trustedHtml("<!doctype html>")}
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta http-equiv="Content-Security-Policy" content="${policy}" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="generator" content="${result.project.name} ${result.project.version}" />
        <title>${pageTitle(result)}</title>
        ${trustedHtml(`<style>${style}</style>`)}
      </head>
      <body>
        <main>
          ${renderHeader(result)} ${renderAnswer(result)} ${renderGoal(result)} ${renderNotices(result)}
          <section aria-labelledby="all">
            <h2 id="all">All variants</h2>
            <p class="legend-line">
              Bar: SLO rate, its darker end the ${intervalLevel(result)} interval.
              <svg class="inline-mark" viewBox="0 0 14 14" aria-hidden="true">
                <path class="published-limit" d="M7 1l5.5 6l-5.5 6l-5.5 -6z" />
              </svg>
              published limit,
              <svg class="inline-mark" viewBox="0 0 14 14" aria-hidden="true">
                <path class="published-reached" d="M7 1l5.5 6l-5.5 6l-5.5 -6z" />
              </svg>
              published goal that was
              reached.${anyStandAlone(result.variants) && " Alone: images/s of the model without a server."}
            </p>
            ${renderVariantTable(result, all)}
          </section>
          ${all.length > 0 && renderCharts(result, all)}
          <section aria-labelledby="trials">
            <h2 id="trials">Trials and evidence</h2>
            ${renderVariantDetails(result, all)}
          </section>
          ${renderApply(result)} ${renderMethod(result)} ${renderFacts(result, manifest)}
        </main>
        ${trustedHtml(`<script>${script}</script>`)}
      </body>
    </html> `.text;
}

function renderCharts(result: Result, all: readonly VariantSeries[]): Html {
  const quantile = formatQuantile(result.slo.quantile);
  const batch = meanBatchChart(result, all, "half");
  const busy = gpuBusyChart(result, all, "half");
  const linesAre = all.some(({ variant }) => variant.modelCurve)
    ? "Lines are what the service model fitted to a variant's trials predicts"
    : "Lines join the medians";
  return html`<section aria-labelledby="curves">
    <h2 id="curves">Response time by rate</h2>
    <p class="legend-line">
      A mark is a trial: full it passed, hollow it failed, half it was undecided; at the upper edge it lies
      beyond the scale. ${linesAre}; letters stand at the SLO rates, with their intervals.
    </p>
    ${renderLegend(all)}
    <figure aria-label="${quantile} response time by request rate">
      <div class="only-wide">${rateLatencyChart(result, all, "wide")}</div>
      <div class="only-narrow">${rateLatencyChart(result, all, "narrow")}</div>
    </figure>
    <div class="two">
      <figure>
        <figcaption>Mean batch by rate</figcaption>
        ${
          batch
            ? html`<div class="only-wide">${batch}</div>
                <div class="only-narrow">${meanBatchChart(result, all, "narrow")}</div>`
            : html`<p class="absent">Batch sizes absent: this server reports none.</p>`
        }
      </figure>
      <figure>
        <figcaption>GPU busy by rate</figcaption>
        ${
          busy
            ? html`<div class="only-wide">${busy}</div>
                <div class="only-narrow">${gpuBusyChart(result, all, "narrow")}</div>`
            : html`<p class="absent">GPU metrics absent: this server reports none.</p>`
        }
      </figure>
    </div>
  </section>`;
}

function renderLegend(all: readonly VariantSeries[]): Html {
  return html`<ul class="legend" aria-label="Variants">
    ${all.map(
      (series) =>
        html`<li>
          <span class="entry ${series.colourClass}" data-legend="${series.key}">
            <span class="key" aria-hidden="true">${series.key}</span>
            <svg viewBox="0 0 34 12" aria-hidden="true">
              <line class="curve" x1="1" x2="33" y1="6" y2="6" stroke-dasharray="${series.dash || "none"}" />
              ${markerAt(series.marker, 17, 6, 3.8, "mark pass")}
            </svg>
            <span>${series.variant.name}</span>
          </span>
        </li>`,
    )}
  </ul>`;
}

function pageTitle(result: Result): string {
  const winner = recommendedVariant(result);
  return winner?.sloRate
    ? `${formatRate(winner.sloRate.estimate)} requests/s with ${winner.name} (${formatSlo(result.slo)})`
    : withoutAnswer(result);
}

function intervalLevel(result: Result): string {
  const level = result.variants.find((variant) => variant.sloRate)?.sloRate?.level ?? 0.95;
  return `${Math.round(level * 100)} %`;
}

function hashSource(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
