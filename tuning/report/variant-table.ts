/** All variants in one table: SLO rate with its interval against the published figure, where it runs, what limits it. */
import type { Result, ResultVariant } from "../results/result-schema";
import {
  formatBatch,
  formatGain,
  formatMs,
  formatQuantile,
  formatRate,
  formatShare,
  formatUsd,
  noValue,
  plain,
} from "./format";
import { causePill, nextMovePrediction } from "./headline";
import { html, type Fragment, type Html } from "./html";
import { px } from "./marker";
import { roundUp } from "./scale";
import type { VariantSeries } from "./series";
import { anyStandAlone, notKnown, standAloneText } from "./stand-alone-text";

interface Column {
  readonly title: string;
  readonly className?: string;
  readonly cell: (series: VariantSeries) => Fragment;
}

/** The table; a list of cards on phones. */
export function renderVariantTable(result: Result, all: readonly VariantSeries[]): Html {
  const columns = columnsOf(result, axisEnd(result));
  // The roles keep the table a table for screen readers where CSS lays the rows out as cards.
  return html`<table class="variants" role="table">
    <caption class="sr">
      SLO rate of every variant with its interval, the published figure, and what limits it
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        ${columns.map((column) => html`<th role="columnheader" scope="col" class="${column.className}">${column.title}</th>`)}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${all.map(
        (series) =>
          html`<tr role="row" class="${series.recommended && "best"}">
            ${columns.map((column, index) => renderCell(column, index === 0, series))}
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function renderCell(column: Column, isHeader: boolean, series: VariantSeries): Html {
  const content = column.cell(series);
  return isHeader
    ? html`<th role="rowheader" scope="row" class="${column.className}">${content}</th>`
    : html`<td role="cell" class="${column.className}" data-label="${column.title}">${content}</td>`;
}

function columnsOf(result: Result, end: number): readonly Column[] {
  const cost: Column[] = result.price
    ? [
        {
          title: "per million",
          className: "number",
          cell: ({ variant }) =>
            variant.usdPerMillion === null ? noValue : formatUsd(variant.usdPerMillion),
        },
      ]
    : [];
  return [
    { title: "Variant", className: "name", cell: (series) => nameCell(series, result) },
    {
      title: "SLO rate, requests/s",
      className: "number rate",
      cell: ({ variant }) => rateCell(variant, result),
    },
    { title: "against published ◇", className: "bar", cell: (series) => intervalBar(series, end) },
    { title: "published", className: "number", cell: ({ variant }) => publishedCell(variant) },
    { title: "run at", className: "number", cell: ({ variant }) => formatRate(variant.operatingRate) },
    {
      title: formatQuantile(result.slo.quantile),
      className: "number",
      cell: ({ variant }) => formatMs(variant.p95Ms),
    },
    { title: "batch", className: "number", cell: ({ variant }) => formatBatch(variant.meanBatch) },
    { title: "GPU", className: "number", cell: ({ variant }) => formatShare(variant.gpuBusy) },
    ...cost,
    { title: "limited by, next move", className: "cause", cell: ({ variant }) => causeCell(variant) },
  ];
}

function nameCell(series: VariantSeries, result: Result): Html {
  const { variant } = series;
  const tied = result.recommendation.tiedWith.includes(variant.name);
  return html`<span class="name-line"
    ><span class="key ${series.colourClass}" aria-hidden="true">${series.key}</span
    ><span class="name-text"
      ><a href="#variant-${series.key}"><code>${variant.name}</code></a>
      ${series.recommended && html`<span class="pill best">recommended</span>`}
      ${tied && html`<span class="pill">tied</span>`}
      ${variant.assumptions.length > 0 && html`<span class="pill" title="${variant.assumptions.join(" ")}">assumed</span>`}
      <small>${settingsText(variant, delaysDiffer(result))}</small></span
    ></span
  >`;
}

/** The settings in a few words. */
export function settingsText({ settings }: ResultVariant, withDelay: boolean): string {
  const precision = settings.precision === "original" ? "unconverted" : settings.precision.toUpperCase();
  const instances = settings.instanceCount === 1 ? "1 instance" : `${settings.instanceCount} instances`;
  const delay = withDelay ? `, delay ${plain(settings.queueDelayUs / 1000)} ms` : "";
  return `${precision}, batch ≤ ${settings.maxBatchSize}, ${instances}${delay}`;
}

/** A queue delay that all variants share tells nothing in the table. */
function delaysDiffer(result: Result): boolean {
  return new Set(result.variants.map((variant) => variant.settings.queueDelayUs)).size > 1;
}

/** Why a variant has no rate, in a few words. */
export function rateMissing({ accuracy }: ResultVariant): string {
  return accuracy?.passed === false ? "excluded: wrong answers" : "held at no rate";
}

function rateCell(variant: ResultVariant, { variants }: Result): Html {
  const { sloRate } = variant;
  const alone = anyStandAlone(variants) && aloneLine(variant);
  if (!sloRate) return html`<b>${noValue}</b><small>${rateMissing(variant)}</small>${alone}`;
  return html`<b>${formatRate(sloRate.estimate)}</b
    ><small>${formatRate(sloRate.low)} to ${formatRate(sloRate.high)}</small>${alone}`;
}

function publishedCell({ published }: ResultVariant): Html {
  if (!published) return html`${noValue}`;
  const below = published.ratio === null ? "goal reached" : formatGain(published.ratio - 1);
  return html`<span title="${published.source}">${formatRate(published.rps)}</span><small>${below}</small>`;
}

/** The share of the artefact's own speed that is served, where any variant's is known. */
function aloneLine(variant: ResultVariant): Html {
  const { standAlone } = variant;
  if (standAlone === null) return html`<small>alone: ${notKnown}</small>`;
  const { imagesPerS, servedShare } = standAlone;
  const own = `${formatRate(imagesPerS)} alone`;
  return html`<small title="${standAloneText(variant)}"
    >${servedShare === null ? own : `${formatShare(servedShare)} of ${own}`}</small
  >`;
}

function causeCell(variant: ResultVariant): Html {
  const { cause, nextMove } = variant.diagnosis;
  return html`${causePill(cause)}
  ${nextMove && html`<small>${nextMove.change}: ${nextMovePrediction(variant)}</small>`}
  ${variant.note !== null && html`<small class="note">${variant.note}</small>`}`;
}

function axisEnd(result: Result): number {
  return roundUp(
    Math.max(
      1,
      ...result.variants.flatMap((variant) => [variant.sloRate?.high ?? 0, variant.published?.rps ?? 0]),
    ),
  );
}

/** A bar up to the SLO rate, its interval as a darker end, the published figure as a diamond. */
function intervalBar(series: VariantSeries, end: number): Html {
  const { sloRate, published } = series.variant;
  const [width, height, inset] = [240, 26, 7];
  const at = (value: number) => inset + ((width - 2 * inset) * value) / end;
  const middle = height / 2;
  const words =
    (sloRate ? `interval ${formatRate(sloRate.low)} to ${formatRate(sloRate.high)}` : "no SLO rate") +
    (published ? `, published ${formatRate(published.rps)}` : "");
  return html`<svg
    class="interval ${series.colourClass}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label="${words}"
  >
    <line class="track" x1="${at(0)}" x2="${at(end)}" y1="${middle}" y2="${middle}" />
    ${
      sloRate &&
      html`<rect
          class="to"
          x="${at(0)}"
          y="${middle - 4}"
          width="${px(at(sloRate.estimate) - at(0))}"
          height="8"
          rx="1"
        />
        <line
          class="range"
          x1="${px(at(sloRate.low))}"
          x2="${px(at(sloRate.high))}"
          y1="${middle}"
          y2="${middle}"
        />
        <line
          class="point"
          x1="${px(at(sloRate.estimate))}"
          x2="${px(at(sloRate.estimate))}"
          y1="4"
          y2="${height - 4}"
        />`
    }
    ${
      published &&
      html`<path
        class="published-${published.kind}"
        d="M${px(at(published.rps))} ${middle - 6}l5.5 6l-5.5 6l-5.5 -6z"
      />`
    }
  </svg>`;
}
