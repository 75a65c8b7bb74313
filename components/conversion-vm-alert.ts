import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface ConversionVmAlertArgs {
  readonly project: string;
  readonly instanceName: pulumi.Input<string>;
  /** Hours after which Compute Engine stops the machine. */
  readonly maxLifetimeH: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** A stop may take this long without anything being wrong, hours. */
const graceH = 0.5;

/**
 * Incident in Cloud Monitoring when the conversion VM runs on past its lifetime, and costs money. The machine is outside the cluster,
 * where Prometheus does not reach; Google's own metric of its uptime does not depend on what runs in it.
 * Metric: cloud.google.com/monitoring/api/metrics_gcp, compute.googleapis.com/instance/uptime_total, seconds since its start.
 */
export class ConversionVmAlert extends pulumi.ComponentResource {
  constructor(name: string, args: ConversionVmAlertArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ConversionVmAlert", name, { maxLifetimeH: args.maxLifetimeH }, opts);
    const filter = pulumi.interpolate`resource.type = "gce_instance" AND metric.type = "compute.googleapis.com/instance/uptime_total" AND metric.labels.instance_name = "${args.instanceName}"`;
    new gcp.monitoring.AlertPolicy(
      name,
      {
        project: args.project,
        displayName: "ConversionVmPastLifetime",
        combiner: "OR",
        conditions: [
          {
            displayName: `runs longer than ${args.maxLifetimeH} h`,
            conditionThreshold: {
              filter,
              comparison: "COMPARISON_GT",
              thresholdValue: (args.maxLifetimeH + graceH) * 3600,
              duration: "0s",
              aggregations: [{ alignmentPeriod: "300s", perSeriesAligner: "ALIGN_MAX" }],
            },
          },
        ],
        documentation: {
          mimeType: "text/markdown",
          content:
            "Stop the machine (`gcloud compute instances stop`) after a look at its serial port. " +
            "See docs/operations.md#conversionvmpastlifetime.",
        },
        userLabels: { ...args.labels },
      },
      { parent: this },
    );
    this.registerOutputs({});
  }
}
