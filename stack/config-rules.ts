import { smallestReadinessBudgetS } from "../components/triton-startup";
import type { ConfigKey } from "./config-keys";
import type { StackConfig } from "./derived-config";
import { clusterRules } from "./rules/cluster-rules";
import { conversionRules } from "./rules/conversion-rules";
import { gpuRules } from "./rules/gpu-rules";
import { imageRules } from "./rules/image-rules";
import { loadRules } from "./rules/load-rules";
import { monitoringRules } from "./rules/monitoring-rules";

/** A condition on several keys. */
export interface ConfigRule {
  /** The keys it looks at; the first is the one to blame. */
  readonly keys: readonly [ConfigKey, ...ConfigKey[]];
  /** What is wrong and how to fix it, or null. */
  readonly problem: (config: StackConfig) => string | null;
}

/** Rules of serving itself. */
const servingRules: readonly ConfigRule[] = [
  {
    keys: ["readinessBudgetS", "modelLoadBudgetS"],
    problem: ({ readinessBudgetS, modelLoadBudgetS }) => {
      const smallest = smallestReadinessBudgetS(modelLoadBudgetS);
      return readinessBudgetS >= smallest
        ? null
        : `${readinessBudgetS} s end before a server can be ready: node, driver and image take up to ` +
            `${smallest - modelLoadBudgetS} s and the model ${modelLoadBudgetS} s. Set it to ${smallest} or more, or lower modelLoadBudgetS`;
    },
  },
  {
    keys: ["modelControlMode", "variant", "repositoryVariants"],
    problem: ({ modelControlMode, variants }) =>
      modelControlMode === "explicit" || variants.repository.length === 1
        ? null
        : `${modelControlMode} loads all ${variants.repository.length} variants of the repository into one GPU. ` +
          `Use explicit, or set repositoryVariants to []`,
  },
  {
    keys: ["variant", "sloBoundMs"],
    problem: ({ variants: { served }, sloBoundMs }) =>
      served.queueDelayUs < sloBoundMs * 1000
        ? null
        : `its queue delay of ${served.queueDelayUs} us alone reaches the SLO bound of ${sloBoundMs} ms; lower queueDelayUs`,
  },
  {
    keys: ["autoscale", "monitoring"],
    problem: ({ autoscale, monitoring }) =>
      autoscale && !monitoring ? "needs Prometheus for its metric; set monitoring to true" : null,
  },
  {
    keys: ["autoscaleMaxReplicas", "autoscale", "replicas"],
    problem: ({ autoscale, autoscaleMaxReplicas, replicas }) =>
      autoscale && autoscaleMaxReplicas <= replicas
        ? `${autoscaleMaxReplicas} leaves nothing to scale above replicas ${replicas}; raise it`
        : null,
  },
  {
    keys: ["autoscaleRatePerS", "autoscale"],
    problem: ({ autoscale, autoscaleRatePerS }) =>
      autoscale && autoscaleRatePerS === 0
        ? "is needed with autoscale; set it to about 0.8 of the SLO rate that npm run tune found for the variant"
        : null,
  },
  {
    keys: ["autoscale", "loadGenerator"],
    problem: ({ autoscale, loadGenerator }) =>
      autoscale && loadGenerator
        ? "changes the number of servers while a sweep measures them; set loadGenerator to false, or autoscale to false"
        : null,
  },
];

/** All rules, in the order in which their problems are reported. */
export const configRules: readonly ConfigRule[] = [
  ...clusterRules,
  ...gpuRules,
  ...imageRules,
  ...servingRules,
  ...loadRules,
  ...monitoringRules,
  ...conversionRules,
];
