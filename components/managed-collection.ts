import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { RuleGroup } from "../monitoring/rule-types";
import type { ScrapeTarget } from "../monitoring/scrape-jobs";
import { dropsWithCluster, type InCluster } from "./in-cluster";

export interface ManagedCollectionArgs extends InCluster {
  /** What is read. The namespaces exist. */
  readonly targets: readonly ScrapeTarget[];
  /** Seconds between two readings; Google bills by the sample. */
  readonly scrapeIntervalS: number;
  /** Name of the rules in the cluster. A change replaces them. */
  readonly rulesName: string;
  readonly ruleGroups: readonly RuleGroup[];
}

const apiVersion = "monitoring.googleapis.com/v1";

/**
 * Google Managed Prometheus for servers and load generator: one PodMonitoring a scrape job, named like it because its name becomes the
 * `job` label, and the stack's rules. The cluster must have managed collection switched on.
 * Fields: github.com/GoogleCloudPlatform/prometheus-engine, doc/api.md.
 */
export class ManagedCollection extends pulumi.ComponentResource {
  constructor(name: string, args: ManagedCollectionArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ManagedCollection", name, { targets: args.targets.map(({ job }) => job) }, opts);
    const interval = `${args.scrapeIntervalS}s`;
    for (const { job, namespace, app, portName, path = "/metrics" } of args.targets) {
      new k8s.apiextensions.CustomResource(
        `${name}-${job}`,
        {
          apiVersion,
          kind: "PodMonitoring",
          metadata: { name: job, namespace },
          spec: {
            selector: { matchLabels: { app } },
            endpoints: [{ port: portName, path, interval }],
            targetLabels: { metadata: ["pod", "node"] },
          },
        },
        dropsWithCluster(this, args),
      );
    }
    new k8s.apiextensions.CustomResource(
      `${name}-rules`,
      {
        apiVersion,
        // Servers and load generator have different namespaces, so rules of one namespace would not see both.
        kind: "ClusterRules",
        metadata: { name: args.rulesName },
        spec: { groups: args.ruleGroups.map(({ name: group, rules }) => ({ name: group, interval, rules })) },
      },
      dropsWithCluster(this, args),
    );
    this.registerOutputs({});
  }
}
