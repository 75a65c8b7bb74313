/** Plans as a table on the terminal. Pure. */
import { printable } from "../report/ansi";
import { formatRate, formatSlo, formatUsd } from "../report/format";
import { textTable } from "../report/text-table";
import type { Result } from "../results/result-schema";
import type { Demand, Plan } from "./decide";
import { pulumiCommands } from "./stack-settings";
import { settingsFor } from "./recommendation";

/** All plans, the first one in words, and the commands that apply it. */
export function renderPlans(result: Result, demand: Demand, plans: readonly Plan[]): string {
  const [best] = plans;
  if (!best) return `No variant of this sweep has an operating rate, so there is nothing to plan with.\n`;
  const table = textTable(
    [
      { title: "variant", right: false },
      { title: "replicas", right: true },
      { title: "load of each", right: true },
      { title: "spare lost", right: true },
      { title: "at most", right: true },
      ...(best.cost
        ? [
            { title: "per year", right: true },
            { title: "per million", right: true },
          ]
        : []),
    ],
    plans.map(({ variant, replicas, loadPerReplicaPerS, ratePerReplicaPerS, cost }) => [
      variant.name,
      String(replicas),
      formatRate(loadPerReplicaPerS.all),
      formatRate(loadPerReplicaPerS.withoutSpare),
      formatRate(ratePerReplicaPerS),
      ...(cost ? [formatUsd(cost.usdPerYear, 0), formatUsd(cost.usdPerMillion, 3)] : []),
    ]),
  );
  const head =
    `${formatRate(demand.loadPerS)} requests/s within ${formatSlo(result.slo)}, ${demand.spareReplicas} spare, ` +
    `${Math.round(demand.margin * 100)} % margin${result.simulated ? " [simulated T4]" : ""}`;
  return [
    printable(head),
    "",
    ...table,
    "",
    `Take ${best.replicas} x ${printable(best.variant.name)}; an autoscaler should add one at ` +
      `${formatRate(best.autoscale.ratePerS)} requests/s per replica (${best.autoscale.reason}).`,
    "Replicas are taken to scale linearly; measure with several to be sure.",
    "",
    ...pulumiCommands(settingsFor(best))
      .split("\n")
      .map((line) => `  ${printable(line)}`),
    "",
  ].join("\n");
}
