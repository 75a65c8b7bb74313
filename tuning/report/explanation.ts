/** The report's lower part: how to use the winner, how the number is made, where it comes from. */
import { explorationText } from "./exploration-text";
import { autoscaleTarget } from "../decision/decide";
import { pulumiCommands, stackYaml, variantSetting } from "../decision/stack-settings";
import { clocksText, devicesText, powerLimitText } from "../results/gpu-facts";
import type { Manifest } from "../results/manifest";
import type { Result } from "../results/result-schema";
import { formatFactor, formatRate, formatSlo, formatUsd, plain } from "./format";
import { recommendedVariant } from "./headline";
import { html, type Fragment, type Html } from "./html";
import { anyStandAlone } from "./stand-alone-text";

/** Stack configuration that serves the recommended variant. */
export function renderApply(result: Result): Html | null {
  const winner = recommendedVariant(result);
  if (!winner) return null;
  const settings = { variant: variantSetting(winner) };
  const autoscale = autoscaleTarget(winner);
  const commands = pulumiCommands(settings);
  const yaml = stackYaml(result.project.name, settings);
  return html`<section aria-labelledby="apply">
    <h2 id="apply">Apply it</h2>
    <p>In the stack's folder; <code>pulumi up</code> shows what changes before it does anything.</p>
    <div class="two">${codeBlock("Commands", commands)} ${codeBlock("Or in Pulumi.<stack>.yaml", yaml)}</div>
    <p class="small">
      How many replicas a load takes, with one to spare, and what they cost:
      <code>npm run decide -- RESULTS-FOLDER --for REQUESTS-PER-SECOND</code>.
      ${
        autoscale &&
        html`An autoscaler should add one at ${formatRate(autoscale.ratePerS)} requests/s per replica
        (${autoscale.reason}).`
      }
    </p>
  </section>`;
}

function codeBlock(title: string, code: string): Html {
  return html`<figure class="code">
    <figcaption>${title}</figcaption>
    <pre><code>${code}</code></pre>
  </figure>`;
}

/** How the number is made, for an engineer without a statistics degree. */
export function renderMethod(result: Result): Html {
  const { boundMs, quantile } = result.slo;
  const { accuracy } = result;
  const allowed = plain((1 - quantile) * 100);
  const load =
    result.load === "users"
      ? "A fixed number of users each wait about a second after an answer and send again, as in the published measurements. " +
        "The rate is what comes out."
      : `Requests are sent at planned times (${result.load === "poisson" ? "Poisson arrivals" : "equal gaps"}), whether or ` +
        "not earlier ones were answered, and timed from the planned send. A stall therefore counts for every request it delays.";
  const points: [string, string][] = [
    ["Load", load],
    [
      "Verdict",
      `A trial counts exactly how many requests miss ${plain(boundMs)} ms; ${allowed} % may. Neighbouring requests share a ` +
        "queue, so the interval of that share comes from batch means, not from the request count. Only an interval wholly " +
        `below ${allowed} % passes and wholly above fails; a queue that keeps growing fails at once. A short trial is often ` +
        "undecided; the SLO rate rests on all of them together.",
    ],
    [
      "Search",
      "A short probe measures service times, and a simulation of the server's batching with them predicts the limit. Trials near " +
        "it show how much faster or slower than the model the server really is: the model is run through each trial's own " +
        "arrivals until it gives the measured response time. The SLO rate is where the model so corrected meets the bound in a " +
        "long run; the interval is as wide as the trials disagree.",
    ],
    [
      "The two rates",
      "The SLO rate is the best estimate of the limit, with its two-sided interval. The rate to run at is the 99 % lower bound: " +
        "response times rise steeply just below the limit.",
    ],
    [
      "Limits of the client",
      "A trial in which the load generator fell behind or lost a worker is invalid. It is shown, and not used.",
    ],
    ...(accuracy === null ? [] : [accuracyPoint(accuracy)]),
    ...(anyStandAlone(result.variants) ? [standAlonePoint(result)] : []),
    [
      "Cause",
      "The resource whose 10 % relief raises the predicted SLO rate most. Busy shares are shown as evidence; they are not the rule.",
    ],
    [
      "How far to trust it",
      "npm run bench:search puts the search to the test on simulated servers whose true rate is known, beside three methods in common " +
        "use; docs/how-the-number-is-made.md shows how often each was wrong, and how much load each took.",
    ],
  ];
  return html`<section aria-labelledby="method">
    <h2 id="method">How the number is made</h2>
    <dl class="method">
      ${points.map(
        ([name, text]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${text}</dd>
          </div>`,
      )}
    </dl>
    <p class="small">Percentile rule: ${result.percentileRule}. Rates are per server replica.</p>
  </section>`;
}

function standAlonePoint({ variants }: Result): [string, string] {
  const simulated = variants.some(({ standAlone }) => standAlone?.basis === "simulated");
  const what = simulated
    ? "What the simulated GPU's phase would pass in full batches, without copies or server; no artefact was measured."
    : "What the artefact did when it was converted, without a server: one caller, one batch after the other, copies included.";
  return [
    "Model alone",
    `${what} A low share with an idle GPU is lost outside the model: copies, link, waiting for a batch. More than 100 % means that ` +
      `instances do at once what one caller does in turn${simulated ? "" : ", or that the machine was busier when the model was measured alone"}.`,
  ];
}

function accuracyPoint({ reference, images, limits }: NonNullable<Result["accuracy"]>): [string, string] {
  const percent = (share: number): string => `${plain(share * 100)} %`;
  const asked = Object.entries(limits).map(
    ([precision, limit]) =>
      `${precision.toUpperCase()}: top-1 at least ${percent(limit.top1Agreement)}, top-5 at least ${percent(limit.top5Agreement)}, ` +
      `probabilities within ${limit.maxDifference} and ${limit.meanDifference} on average`,
  );
  return [
    "Accuracy",
    `Before its speed was measured, the answers of every conversion to ${images} held-out images were compared with those of ` +
      `${reference}, through the serving API. One that differs by more than its precision allows is not measured (${asked.join("; ")}).`,
  ];
}

/** Longest that the last trial's metrics take to be read, milliseconds. */
const READ_SLACK_MS = 60_000;

/**
 * Address of the dashboard over the time of the sweep; null when there is none, or it is no web address.
 * Format of the time: grafana.com/docs/grafana/latest/dashboards/use-dashboards, control the time range using a URL.
 */
export function dashboardLink(result: Result, { target, startedAt, endedAt }: Manifest): string | null {
  const { dashboardUrl } = target;
  if (dashboardUrl === null || dashboardUrl === undefined || !/^https?:\/\//.test(dashboardUrl)) return null;
  const fromMs = Date.parse(startedAt);
  const endMs =
    endedAt === null ? Date.parse(result.startedAt) + result.elapsedS * 1000 : Date.parse(endedAt);
  const url = new URL(dashboardUrl);
  url.searchParams.set("from", String(fromMs));
  url.searchParams.set("to", String(Math.ceil(endMs) + READ_SLACK_MS));
  return url.href;
}

/** The servers' GPUs, and what of them is not known; nothing where there is none. */
function gpuFacts({ gpu }: Manifest): [string, Fragment][] {
  if (!gpu) return [];
  const known: [string, string | null][] = [
    ["GPU", devicesText(gpu)],
    ["GPU driver", gpu.driver],
    ["GPU clocks", clocksText(gpu)],
    ["GPU power limit", powerLimitText(gpu)],
    ["Servers' machines", gpu.machineImage],
  ];
  return [
    ...known.filter((fact): fact is [string, string] => fact[1] !== null),
    ...(gpu.notKnown === null
      ? []
      : [["GPU driver, clocks", `not known: ${gpu.notKnown}`] satisfies [string, string]]),
  ];
}

/** Circumstances of the run, as far as they may explain a number. */
export function renderFacts(result: Result, manifest: Manifest | null): Html {
  const facts: [string, Fragment][] = [
    ["Target", result.targetDescription],
    ["SLO", formatSlo(result.slo)],
    ["Load, seed", `${result.load}, ${result.seed}`],
  ];
  if (manifest) {
    facts.push(
      ["Server", `${manifest.target.serverName} ${manifest.target.serverVersion}`],
      ...gpuFacts(manifest),
      ["Load workers", String(manifest.workers)],
      [
        "Host",
        `${manifest.host.cpuModel}, ${manifest.host.cores} cores, ${gibibytes(manifest.host.memoryBytes)}`,
      ],
      ["Versions", `${manifest.project.name} ${manifest.project.version}, Node.js ${manifest.node}`],
      ["Images", html`${manifest.images.length} <small>sha256 ${manifest.imagesHash.slice(0, 16)}…</small>`],
      ["Started", manifest.startedAt],
      ...(manifest.resumedAt.length > 0
        ? [["Resumed", manifest.resumedAt.join(", ")] satisfies [string, Fragment]]
        : []),
      ["Ended", manifest.endedAt ?? "not yet"],
    );
    const dashboard = dashboardLink(result, manifest);
    if (dashboard !== null)
      facts.push([
        "Dashboard",
        html`<a href="${dashboard}">Grafana at the time of the sweep</a>
          <small>while its port is forwarded</small>`,
      ]);
  }
  if (result.price)
    facts.push([
      "Price",
      `${formatUsd(result.price.usdPerReplicaHour)} per replica and hour, as of ${result.price.asOf}`,
    ]);
  if (result.exploration) facts.push(["Exploration", explorationText(result.exploration)]);
  for (const { replicas, sloRate, factor } of result.scaling)
    facts.push([
      `${replicas} servers`,
      `${formatRate(sloRate.estimate)} requests/s together (${formatRate(sloRate.low)} to ${formatRate(sloRate.high)}), ${formatFactor(factor)} one of them`,
    ]);
  if (result.cost)
    facts.push([
      "Cost of the sweep",
      `${formatUsd(result.cost.usd)} of ${formatUsd(result.cost.maxUsd)} allowed, at ${formatUsd(result.cost.usdPerHour)} an hour for all machines`,
    ]);
  return html`<section aria-labelledby="facts">
    <h2 id="facts">Where it comes from</h2>
    <dl class="facts">
      ${facts.map(
        ([name, value]) =>
          html`<div>
            <dt>${name}</dt>
            <dd>${value}</dd>
          </div>`,
      )}
    </dl>
    ${
      result.notes.length > 0 &&
      html`<h3>Notes of the run</h3>
        <ul>
          ${result.notes.map((note) => html`<li>${note}</li>`)}
        </ul>`
    }
    <p class="small">
      Beside this file: <code>result.json</code> (for programs), <code>points.jsonl</code> (every trial),
      <code>manifest.json</code> (to run it
      again)${recommendedVariant(result) && html`, <code>recommendation.yaml</code> (the winner as stack configuration)`}.
    </p>
  </section>`;
}

function gibibytes(bytes: number): string {
  return `${Math.round(bytes / 2 ** 30)} GiB`;
}
