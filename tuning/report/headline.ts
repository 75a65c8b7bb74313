/** Top of the report: the answer in words, and what must not be overlooked. */
import type { Result, ResultVariant } from "../results/result-schema";
import { isUnmeasured } from "../results/unmeasured";
import {
  formatBatch,
  formatDuration,
  formatFactor,
  formatGain,
  formatInstant,
  formatMs,
  formatQuantile,
  formatRate,
  formatShare,
  formatSlo,
  formatUsd,
  keepUnits,
  plain,
} from "./format";
import { html, type Html } from "./html";
import { standAloneText } from "./stand-alone-text";

/** The recommended variant; null when none held the SLO. */
export function recommendedVariant(result: Result): ResultVariant | null {
  return result.variants.find((variant) => variant.name === result.recommendation.variant) ?? null;
}

/** What to say where there is no winner: nothing held the SLO, or the sweep ended before it knew. */
export function withoutAnswer({ slo, variants, endedEarly }: Result): string {
  if (variants.length === 0 && endedEarly !== null)
    return `Ended before it was known which rate holds ${formatSlo(slo)}`;
  return variants.length > 0 && variants.every(isUnmeasured)
    ? `No valid trial shows which rate holds ${formatSlo(slo)}`
    : `No variant held ${formatSlo(slo)}`;
}

export function renderHeader(result: Result): Html {
  const load = { poisson: "Poisson arrivals", constant: "constant rate", users: "closed-loop users" }[
    result.load
  ];
  return html`<header class="top">
    <p class="brand">${result.project.name} <span>SLO sweep</span></p>
    <ul class="chips" aria-label="Circumstances">
      ${result.simulated && html`<li class="chip warn">simulated T4</li>`}
      ${result.processor === "cpu" && html`<li class="chip warn">inference on the CPU</li>`}
      ${result.timeDilation > 1 && html`<li class="chip warn">time dilated up to ${formatFactor(result.timeDilation)}</li>`}
      <li class="chip">${formatSlo(result.slo)}</li>
      <li class="chip">${load}</li>
      <li class="chip">seed ${result.seed}</li>
      <li class="chip">${formatDuration(result.elapsedS)}</li>
      ${result.cost && html`<li class="chip">cost ${formatUsd(result.cost.usd)}</li>`}
      <li class="chip"><time datetime="${result.startedAt}">${formatInstant(result.startedAt)}</time></li>
    </ul>
  </header>`;
}

/** The answer, its certainty, the reason, the limit. */
export function renderAnswer(result: Result): Html {
  const winner = recommendedVariant(result);
  if (!winner?.sloRate)
    return html`<section class="answer none" aria-labelledby="answer">
      <h1 id="answer">${withoutAnswer(result)}</h1>
      <p class="lead">${result.recommendation.reason}</p>
    </section>`;
  const { sloRate, diagnosis } = winner;
  return html`<section class="answer" aria-labelledby="answer">
    <div class="words">
      <p class="kicker">Highest rate within the SLO</p>
      <h1 id="answer">
        <span class="figure">${formatRate(sloRate.estimate)}<small> requests/s</small></span>
        <span class="with">with <code>${winner.name}</code></span>
      </h1>
      <p class="lead">
        ${formatShare(result.slo.quantile)} of the requests are answered within ${plain(result.slo.boundMs)}
        ms. With ${formatShare(sloRate.level)} confidence the limit lies between
        <b>${formatRate(sloRate.low)}</b> and <b>${formatRate(sloRate.high)}</b> requests/s per
        replica${result.simulated && " of the simulated server"}.
      </p>
      <dl class="reasons">
        <dt>Why this one</dt>
        <dd>${keepUnits(result.recommendation.reason)}</dd>
        ${
          diagnosis.cause !== "none" &&
          html`<dt>What limits it</dt>
            <dd>${causePill(diagnosis.cause)} ${keepUnits(diagnosis.summary)}</dd>`
        }
        ${
          winner.standAlone !== null &&
          html`<dt>Model alone</dt>
            <dd>${sentence(standAloneText(winner))}</dd>`
        }
        ${
          diagnosis.nextMove &&
          html`<dt>Next move</dt>
            <dd>${capitalised(diagnosis.nextMove.change)}: ${nextMovePrediction(winner)}</dd>`
        }
      </dl>
    </div>
    ${renderTiles(result, winner)}
  </section>`;
}

function renderTiles(result: Result, winner: ResultVariant): Html {
  const { published } = winner;
  const tiles: (readonly [string, string, string] | null | false)[] = [
    ["Run it at", `${formatRate(winner.operatingRate)}/s`, "holds the SLO with 99 % confidence"],
    [
      `${formatQuantile(result.slo.quantile)} near it`,
      formatMs(winner.p95Ms),
      `of ${plain(result.slo.boundMs)} ms allowed`,
    ],
    winner.gpuBusy !== null && ["GPU busy", formatShare(winner.gpuBusy), "near the SLO rate"],
    winner.meanBatch !== null && [
      "Mean batch",
      formatBatch(winner.meanBatch),
      `of ${winner.settings.maxBatchSize} at most`,
    ],
    published && [
      "Published",
      `${formatRate(published.rps)}/s`,
      published.ratio === null ? "a goal that was reached" : `${formatGain(published.ratio - 1)} found here`,
    ],
    winner.usdPerMillion !== null && [
      "Per million",
      formatUsd(winner.usdPerMillion),
      "at the operating rate",
    ],
  ];
  return html`<dl class="tiles">
    ${tiles.map(
      (tile) =>
        tile &&
        html`<div>
          <dt>${tile[0]}</dt>
          <dd><b>${tile[1]}</b><span>${tile[2]}</span></dd>
        </div>`,
    )}
  </dl>`;
}

/** Everything that changes how the numbers must be read. */
export function renderNotices(result: Result): Html {
  const missing = result.missingVariants.length > 0 && ` Not measured: ${result.missingVariants.join(", ")}.`;
  return html`${
    result.endedEarly !== null &&
    html`<p class="notice">
      <strong>This sweep is incomplete.</strong> ${sentence(result.endedEarly)}${missing}
    </p>`
  }
  ${renderCircumstances(result)} ${renderAssumptions(result)}`;
}

/** Variants whose simulated service times nobody has published. */
function renderAssumptions({ variants }: Result): Html | null {
  const assumed = variants.filter(({ assumptions }) => assumptions.length > 0).map(({ name }) => name);
  if (assumed.length === 0) return null;
  return html`<p class="notice">
    <strong>Assumed service times.</strong> Nobody has published measurements of ${assumed.join(", ")}. What
    is assumed about each, and from which figures, stands with its trials below.
  </p>`;
}

/** That the GPU is simulated, and that time was dilated. */
function renderCircumstances(result: Result): Html | null {
  const simulated = result.simulated && [
    html`<strong>Simulated T4.</strong> `,
    "Requests, network and server are real; the GPU's service times come from a model of published figures, not from a GPU. " +
      "Use these numbers to try the method, not to plan capacity. ",
  ];
  const dilated = result.timeDilation > 1 && [
    html`<strong>Time ran up to ${formatFactor(result.timeDilation)} slower.</strong> `,
    "This machine cannot pass all requests of the fast variants in real time, so load and service times were stretched by " +
      "one factor a variant. All figures are in undilated units.",
  ];
  return simulated || dilated ? html`<p class="notice">${simulated}${dilated}</p>` : null;
}

/** Answer to --goal-rate. */
export function renderGoal(result: Result): Html | null {
  if (!result.goal) return null;
  const word = { yes: "Yes", no: "No", uncertain: "Uncertain" }[result.goal.answer];
  return html`<section class="goal ${result.goal.answer}" aria-label="Goal">
    <p class="goal-answer">${word}</p>
    <p>${keepUnits(result.goal.summary)}</p>
  </section>`;
}

/** The cause of a limit, or that none was found. */
export function causePill(cause: string): Html {
  if (cause === "none") return html`<span class="pill">no limit found</span>`;
  return html`<span class="pill limited-by">${cause}</span>`;
}

/** What the fitted model says about a variant's next move. */
export function nextMovePrediction(variant: ResultVariant): Html | null {
  const move = variant.diagnosis.nextMove;
  if (!move) return null;
  return html`<span class="predicted"
    >${formatGain(move.predictedGain)}, to ${formatRate(move.predictedSloRate)}/s predicted</span
  >`;
}

/** A text that begins a line. */
export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function sentence(text: string): string {
  const capital = capitalised(text);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
