/** The sweep's answer on the terminal. Pure. */
import { explorationText } from "./exploration-text";
import type { Result, ResultVariant } from "../results/result-schema";
import { painter, printable, type Painter } from "./ansi";
import {
  formatBatch,
  formatDuration,
  formatFactor,
  formatGain,
  formatMs,
  formatQuantile,
  formatRate,
  formatShare,
  formatSlo,
  formatUsd,
} from "./format";
import { withoutAnswer } from "./headline";
import { seriesOf } from "./series";
import { anyStandAlone, notKnown, standAloneText } from "./stand-alone-text";
import { textTable, type TextColumn } from "./text-table";

interface Column extends TextColumn {
  readonly cell: (variant: ResultVariant) => string;
}

/**
 * Table of all variants, best first, then the answer in words.
 * @param reportPath shown at the end; null when no report was written
 */
export function renderSummary(result: Result, reportPath: string | null, colour: boolean): string {
  const paint = painter(colour);
  return [
    circumstances(result, paint),
    "",
    ...table(result, paint),
    "",
    ...answer(result, paint),
    ...ending(result, reportPath, paint),
    "",
  ].join("\n");
}

function circumstances(result: Result, paint: Painter): string {
  const parts = [
    formatSlo(result.slo),
    `${result.load} load`,
    `seed ${result.seed}`,
    formatDuration(result.elapsedS),
    ...(result.cost ? [formatUsd(result.cost.usd)] : []),
  ];
  const warnings = [
    ...(result.simulated ? ["simulated T4"] : []),
    ...(result.processor === "cpu" ? ["inference on the CPU"] : []),
    ...(result.timeDilation > 1 ? [`time dilated up to ${formatFactor(result.timeDilation)}`] : []),
  ];
  const text = printable(parts.join(", "));
  return warnings.length > 0 ? `${text} ${paint("yellow", `[${warnings.join(", ")}]`)}` : text;
}

function table(result: Result, paint: Painter): string[] {
  const variants = seriesOf(result).map((series) => series.variant);
  const columns = columnsOf(result);
  const [head = "", ...rows] = textTable(
    columns,
    variants.map((variant) => columns.map((column) => column.cell(variant))),
  );
  return [
    paint("dim", head),
    ...rows.map((row, index) =>
      variants[index]?.name === result.recommendation.variant ? paint("bold", row) : row,
    ),
  ];
}

function columnsOf(result: Result): readonly Column[] {
  const { recommendation } = result;
  const mark = ({ name }: ResultVariant) =>
    name === recommendation.variant ? "*" : recommendation.tiedWith.includes(name) ? "=" : " ";
  return [
    { title: "  variant", right: false, cell: (variant) => `${mark(variant)} ${variant.name}` },
    { title: "SLO rate", right: true, cell: ({ sloRate }) => formatRate(sloRate?.estimate ?? null) },
    {
      title: "interval",
      right: true,
      cell: ({ sloRate }) => (sloRate ? `${formatRate(sloRate.low)}..${formatRate(sloRate.high)}` : ""),
    },
    { title: "run at", right: true, cell: ({ operatingRate }) => formatRate(operatingRate) },
    { title: "published", right: true, cell: publishedText },
    ...(anyStandAlone(result.variants) ? [{ title: "alone", right: true, cell: aloneText }] : []),
    { title: formatQuantile(result.slo.quantile), right: true, cell: ({ p95Ms }) => formatMs(p95Ms) },
    { title: "batch", right: true, cell: ({ meanBatch }) => formatBatch(meanBatch) },
    { title: "GPU", right: true, cell: ({ gpuBusy }) => formatShare(gpuBusy) },
    {
      title: "limited by",
      right: false,
      cell: ({ accuracy, diagnosis }) =>
        accuracy?.passed === false
          ? "excluded: wrong answers"
          : diagnosis.cause === "none"
            ? ""
            : diagnosis.cause,
    },
  ];
}

function publishedText({ published }: ResultVariant): string {
  if (!published) return "";
  const comparison = published.ratio === null ? "goal" : formatGain(published.ratio - 1);
  return `${formatRate(published.rps)} (${comparison})`;
}

/** The artefact's own speed, and the share of it that is served. */
function aloneText({ standAlone }: ResultVariant): string {
  if (standAlone === null) return notKnown;
  const { imagesPerS, servedShare } = standAlone;
  return `${formatRate(imagesPerS)}${servedShare === null ? "" : ` (${formatShare(servedShare)})`}`;
}

function answer(result: Result, paint: Painter): string[] {
  const winner = result.variants.find((variant) => variant.name === result.recommendation.variant);
  const lines: string[] = [];
  if (winner?.sloRate) {
    const { sloRate, operatingRate, diagnosis } = winner;
    const rate = `${formatRate(sloRate.estimate)} requests/s`;
    lines.push(
      paint("bold", printable(`${winner.name} holds ${formatSlo(result.slo)} up to ${rate}`)) +
        printable(
          ` (${formatShare(sloRate.level)} interval ${formatRate(sloRate.low)} to ${formatRate(sloRate.high)}).`,
        ),
      `  Run it at  ${formatRate(operatingRate)} requests/s`,
      `  Why        ${printable(result.recommendation.reason)}`,
    );
    if (winner.standAlone !== null) lines.push(`  Alone      ${printable(standAloneText(winner))}`);
    if (diagnosis.cause !== "none")
      lines.push(`  Limit      ${printable(`${diagnosis.cause}: ${diagnosis.summary}`)}`);
    if (diagnosis.nextMove) {
      const { change, predictedGain, predictedSloRate } = diagnosis.nextMove;
      lines.push(
        `  Next move  ${printable(`${change}: ${formatGain(predictedGain)}, to ${formatRate(predictedSloRate)}/s predicted`)}`,
      );
    }
  } else {
    lines.push(paint("red", printable(`${withoutAnswer(result)}.`)));
  }
  if (result.goal) {
    const style = { yes: "green", no: "red", uncertain: "yellow" } as const;
    lines.push("", paint(style[result.goal.answer], printable(result.goal.summary)));
  }
  return lines;
}

function ending(result: Result, reportPath: string | null, paint: Painter): string[] {
  const lines: string[] = [];
  for (const variant of result.variants)
    if (variant.note !== null)
      lines.push(paint("yellow", printable(`Note on ${variant.name}: ${variant.note}`)));
  const assumed = result.variants.filter(({ assumptions }) => assumptions.length > 0);
  if (assumed.length > 0)
    lines.push(
      paint(
        "yellow",
        printable(
          `Assumed service times: ${assumed.map(({ name }) => name).join(", ")}; nobody has published measurements of them (sources in the report).`,
        ),
      ),
    );
  if (result.exploration) lines.push(printable(`Exploration: ${explorationText(result.exploration)}`));
  for (const { replicas, sloRate, factor } of result.scaling)
    lines.push(
      printable(
        `Scaling: ${replicas} servers hold ${formatRate(sloRate.estimate)} requests/s together ` +
          `(${formatRate(sloRate.low)} to ${formatRate(sloRate.high)}), ${formatFactor(factor)} one of them.`,
      ),
    );
  for (const note of result.notes) lines.push(paint("yellow", printable(`Note: ${note}`)));
  if (result.endedEarly !== null) {
    const missing =
      result.missingVariants.length > 0 ? ` Not measured: ${result.missingVariants.join(", ")}.` : "";
    lines.push(paint("yellow", printable(`Incomplete: ${result.endedEarly}.${missing}`)));
  }
  if (reportPath !== null) lines.push(`Report: ${printable(reportPath)}`);
  return lines.length > 0 ? ["", ...lines] : [];
}
