import * as components from "../../components";
import { prometheusPort, prometheusService } from "../../components/prometheus";
import { adapterRules, serverRateMetric } from "../../monitoring/autoscaling";
import { rateWindowS } from "../../monitoring/queries";
import type { StackConfig } from "../derived-config";
import type { ClusterSection } from "./cluster";
import type { Kubernetes } from "./kubernetes";

/** Autoscaler of Triton with its source of metrics; nothing unless asked for, and nothing while asleep. */
export function createAutoscaling(
  config: StackConfig,
  { systemPool }: ClusterSection,
  kubernetes: Kubernetes,
  triton: components.Triton,
): void {
  if (!config.autoscale || config.asleep) return;
  const { provider, cluster, serving, monitoring } = kubernetes;
  const adapter = new components.MetricsAdapter(
    "metrics-adapter",
    {
      provider,
      cluster,
      namespace: monitoring.namespaceName,
      namespaceName: config.namespaces.monitoring,
      prometheusUrl: `http://${prometheusService}.${config.namespaces.monitoring}.svc:${prometheusPort}`,
      rules: JSON.stringify(adapterRules(rateWindowS(config.scrapeIntervalS)), null, 2),
      digests: config.imageDigests,
    },
    { dependsOn: [systemPool, monitoring] },
  );
  new components.TritonAutoscaler(
    "triton-autoscaler",
    {
      provider,
      cluster,
      namespace: serving.namespaceName,
      minReplicas: config.replicas,
      maxReplicas: config.autoscaleMaxReplicas,
      metric: serverRateMetric,
      targetPerServer: config.autoscaleRatePerS,
    },
    { dependsOn: [adapter, triton] },
  );
}
