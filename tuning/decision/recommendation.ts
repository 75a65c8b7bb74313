/** `recommendation.yaml`: the decision as stack configuration, with the reasons as comments. Pure. */
import type { Result } from "../results/result-schema";
import { formatRate, formatShare, formatSlo, formatUsd } from "../report/format";
import { autoscaleTarget, type Demand, type Plan } from "./decide";
import { stackYaml, variantSetting, type StackSettings } from "./stack-settings";

/** Stack settings that serve the demand by a plan: fixed replicas, and the rate for an autoscaler whether it is used or not. */
export function settingsFor(plan: Plan): StackSettings {
  return {
    variant: variantSetting(plan.variant),
    replicas: plan.replicas,
    autoscaleRatePerS: plan.autoscale.ratePerS,
  };
}

/** Settings that serve the sweep's winner, whatever the load; null when there is none. */
export function winnerYaml(result: Result): string | null {
  const variant = result.variants.find(({ name }) => name === result.recommendation.variant);
  if (!variant) return null;
  const autoscale = autoscaleTarget(variant);
  const comments = [
    ...headOf(result, variant.name, formatSlo(result.slo)),
    `operating rate ${formatRate(variant.operatingRate)}/s per replica (99 % lower bound)`,
    ...(autoscale ? [`autoscaleRatePerS, for the case that autoscale is on: ${autoscale.reason}`] : []),
    `replicas for a load: npm run decide -- RESULTS-FOLDER --for REQUESTS-PER-SECOND`,
  ];
  return [
    ...asComments(comments),
    stackYaml(result.project.name, {
      variant: variantSetting(variant),
      ...(autoscale ? { autoscaleRatePerS: autoscale.ratePerS } : {}),
    }),
    "",
  ].join("\n");
}

/** Text of recommendation.yaml; its `config` can be copied into Pulumi.<stack>.yaml as it is. */
export function recommendationYaml(result: Result, demand: Demand, plan: Plan): string {
  const { variant, cost } = plan;
  const comments = [
    ...headOf(result, variant.name, `${formatRate(demand.loadPerS)} requests/s, ${formatSlo(result.slo)}`),
    `operating rate ${formatRate(variant.operatingRate)}/s per replica (99 % lower bound), less a margin of ` +
      `${formatShare(demand.margin)}: ${formatRate(plan.ratePerReplicaPerS)}/s`,
    `replicas: ${plan.replicas}, of which ${demand.spareReplicas} spare; each gets ${formatRate(plan.loadPerReplicaPerS.all)}/s, ` +
      `or ${formatRate(plan.loadPerReplicaPerS.withoutSpare)}/s when the spare ones are lost`,
    `autoscaleRatePerS: ${plan.autoscale.reason}`,
    ...(cost
      ? [
          `cost: ${formatUsd(cost.usdPerH)} an hour, ${formatUsd(cost.usdPerYear)} a year, ` +
            `${formatUsd(cost.usdPerMillion, 3)} per million inferences`,
        ]
      : []),
  ];
  return [...asComments(comments), stackYaml(result.project.name, settingsFor(plan)), ""].join("\n");
}

function headOf(result: Result, variant: string, purpose: string): string[] {
  return [
    `${variant} for ${purpose}`,
    `made ${result.startedAt} by ${result.project.name} ${result.project.version}, target: ${result.targetDescription}`,
    ...(result.endedEarly === null ? [] : [`INCOMPLETE SWEEP: ${result.endedEarly}`]),
    ...(result.simulated ? ["SIMULATED T4: measure on the real GPU before relying on it"] : []),
  ];
}

function asComments(comments: readonly string[]): string[] {
  // A line feed in a text would end the comment.
  return comments.map((comment) => `# ${comment.replaceAll(/\p{Cc}/gu, " ").replaceAll("\u00a0", " ")}`);
}
