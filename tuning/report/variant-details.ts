/** Each variant's evidence and trials, folded up. */
import type { Result, ResultTrial, ResultVariant } from "../results/result-schema";
import {
  formatBatch,
  formatCount,
  formatDuration,
  formatGain,
  formatMs,
  formatQuantile,
  formatRate,
  formatShare,
  keepUnits,
  plain,
} from "./format";
import { capitalised, causePill, nextMovePrediction } from "./headline";
import { html, type Fragment, type Html } from "./html";
import type { VariantSeries } from "./series";
import { standAloneText } from "./stand-alone-text";
import { rateMissing, settingsText } from "./variant-table";

export function renderVariantDetails(result: Result, all: readonly VariantSeries[]): Html {
  return html`${all.map((series) => renderVariant(result, series))}`;
}

/** The comparison with the reference in a few words; null when there was none. */
function accuracyText({ accuracy }: ResultVariant): string | null {
  if (accuracy === null) return null;
  const { reference, images, top1Agreement, top5Agreement, maxDifference, meanDifference, reasons } =
    accuracy;
  const verdict = accuracy.passed ? "passed" : `failed (${reasons.join("; ")})`;
  if (images === null || maxDifference === null || meanDifference === null)
    return `${verdict}, against ${reference}`;
  return (
    `${verdict}, against ${reference} on ${images} held-out images: top-1 agreement ${formatShare(top1Agreement, 1)}, ` +
    `top-5 ${formatShare(top5Agreement, 1)}, probabilities differ by ${meanDifference.toFixed(4)} on average and ` +
    `${maxDifference.toFixed(4)} at most${accuracy.afterSoftmax ? " (after a softmax)" : ""}`
  );
}

function renderVariant(result: Result, series: VariantSeries): Html {
  const { variant } = series;
  const trialCount = variant.trials.length === 1 ? "1 trial" : `${variant.trials.length} trials`;
  return html`<details class="variant" id="variant-${series.key}">
    <summary>
      <span class="key ${series.colourClass}" aria-hidden="true">${series.key}</span>
      <code>${variant.name}</code>
      <span class="summary-facts">
        ${variant.sloRate ? `${formatRate(variant.sloRate.estimate)}/s` : rateMissing(variant)} ·
        ${variant.diagnosis.cause === "none" ? "no limit found" : variant.diagnosis.cause} · ${trialCount},
        ${formatDuration(variant.measuredS)} of measuring
      </span>
    </summary>
    <p>${causePill(variant.diagnosis.cause)} ${keepUnits(variant.diagnosis.summary)}</p>
    ${variant.note !== null && html`<p class="note">${variant.note}</p>`} ${renderFacts(result, variant)}
    ${variant.trials.length > 0 && renderTrials(result, variant)}
  </details>`;
}

function renderFacts({ processor }: Result, variant: ResultVariant): Html {
  const { fittedLaw, predictedSloRate, sloRate, diagnosis } = variant;
  const facts: [string, Fragment][] = [
    ["Settings", settingsText(variant, true)],
    ["Model alone", keepUnits(standAloneText(variant))],
    ...variant.assumptions.map((sentence): [string, Fragment] => ["Assumption", keepUnits(sentence)]),
    ...Object.entries(diagnosis.evidence).map(([name, figure]): [string, Fragment] => [
      capitalised(name),
      figure,
    ]),
    ...(diagnosis.nextMove
      ? [
          ["Next move", html`${diagnosis.nextMove.change}: ${nextMovePrediction(variant)}`] satisfies [
            string,
            Fragment,
          ],
        ]
      : []),
  ];
  const accuracy = accuracyText(variant);
  if (accuracy !== null) facts.push(["Accuracy", keepUnits(accuracy)]);
  if (predictedSloRate !== null && sloRate)
    facts.push([
      "Predicted beforehand",
      `${formatRate(predictedSloRate)}/s (${formatGain(predictedSloRate / sloRate.estimate - 1)} against the measured one)`,
    ]);
  if (fittedLaw) {
    const { hostMsPerBatch } = fittedLaw;
    const hostBatch = hostMsPerBatch ? `${plain(round(hostMsPerBatch))} ms a batch and ` : "";
    facts.push([
      "Fitted service times",
      `host ${hostBatch}${plain(round(fittedLaw.hostMsPerImage))} ms an image; ${processor.toUpperCase()} ${plain(round(fittedLaw.gpuMsPerBatch))} ms a batch ` +
        `and ${plain(round(fittedLaw.gpuMsPerImage))} ms an image` +
        (fittedLaw.ingressRequestsPerS === null
          ? ""
          : `; wire ${formatRate(fittedLaw.ingressRequestsPerS)} requests/s`),
    ]);
  }
  if (variant.warmUp !== null) facts.push(["Warm-up", warmUpText(variant.warmUp)]);
  const other = sensitivityText(variant);
  if (other !== null) facts.push(["For another objective", keepUnits(other)]);
  if (variant.timeDilation > 1) facts.push(["Time dilation", plain(round(variant.timeDilation))]);
  return html`<dl class="facts">
    ${facts.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** How long it took until the server was as fast as it stays. */
function warmUpText({
  seconds,
  settled,
  firstP95Ms,
  lastP95Ms,
}: NonNullable<ResultVariant["warmUp"]>): string {
  const p95 = `p95 ${formatMs(firstP95Ms)} at first, ${formatMs(lastP95Ms)} at last`;
  return `${settled ? "settled after" : "not settled after"} ${formatDuration(seconds)} of short loads (${p95})`;
}

/** What other bounds and percentiles would allow, by the model fitted to the same trials. */
function sensitivityText({ sensitivity }: ResultVariant): string | null {
  if (sensitivity === null) return null;
  const parts = sensitivity.map(
    ({ quantile, boundMs, sloRate }) =>
      `${formatQuantile(quantile)} within ${formatMs(boundMs)}: ${sloRate === null ? "none" : `${formatRate(sloRate)}/s`}`,
  );
  return `${parts.join(" · ")} (predicted)`;
}

function renderTrials(result: Result, variant: ResultVariant): Html {
  const quantile = formatQuantile(result.slo.quantile);
  return html`<div class="scroll" role="region" tabindex="0" aria-label="Trials of ${variant.name}">
    <table class="trials">
      <thead>
        <tr>
          <th scope="col">trial</th>
          <th scope="col" class="number">requests/s</th>
          <th scope="col" class="number">window</th>
          <th scope="col" class="number">requests</th>
          <th scope="col" class="number">p50</th>
          <th scope="col" class="number">${quantile}</th>
          <th scope="col" class="number">missed the bound</th>
          <th scope="col" class="number">batch</th>
          <th scope="col" class="number">GPU</th>
          <th scope="col">verdict</th>
        </tr>
      </thead>
      <tbody>
        ${variant.trials.map(renderTrial)}
      </tbody>
    </table>
  </div>`;
}

function renderTrial(trial: ResultTrial): Html {
  const { missShare } = trial;
  const verdict = trial.valid ? trial.verdict : "invalid";
  return html`<tr>
    <th scope="row">
      ${trial.purpose}${trial.users !== null && html`<small>${trial.users === 1 ? "1 user" : `${trial.users} users`}</small>`}
    </th>
    <td class="number">${formatRate(trial.ratePerS)}</td>
    <td class="number">${plain(round(trial.measureS))} s</td>
    <td class="number">${formatCount(trial.planned)}</td>
    <td class="number">${formatMs(trial.p50Ms)}</td>
    <td class="number">${formatMs(trial.quantileMs)}</td>
    <td class="number">
      ${formatShare(missShare?.estimate ?? null, 1)}
      ${missShare && html`<small>${formatShare(missShare.low, 1)} to ${formatShare(missShare.high, 1)}</small>`}
    </td>
    <td class="number">${formatBatch(trial.meanBatch)}</td>
    <td class="number">${formatShare(trial.gpuBusy)}</td>
    <td class="verdict">
      <span class="pill ${verdict}">${verdict}</span> <small>${keepUnits(trial.reason)}</small>
    </td>
  </tr>`;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
