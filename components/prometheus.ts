import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { createHash } from "node:crypto";
import { deletedBeforeCluster, dropsWithCluster, type InCluster } from "./in-cluster";
import { images, pinned } from "./images";
import { allow, from, pods, to, toKubernetesApi } from "./network-policies";
import { poolLabel } from "./node-pool";
import { restrictedContainer, restrictedPod } from "./pod-security";
import { StaticVolume } from "./static-volume";
import { sampleShare } from "../monitoring/storage";

export interface PrometheusArgs extends InCluster {
  readonly namespace: pulumi.Input<string>;
  readonly namespaceName: string;
  /** Configuration files by name; `prometheus.yml` is the main one. */
  readonly files: Readonly<Record<string, string>>;
  /** Namespaces with pods to find, and the ports of theirs that are scraped. */
  readonly scraped: readonly {
    readonly namespace: pulumi.Input<string>;
    readonly name: string;
    readonly ports: readonly number[];
  }[];
  /** The oldest samples go after this, or earlier when they fill their share of the disk. */
  readonly retentionDays: number;
  readonly disk: { readonly handle: pulumi.Input<string>; readonly zone: string; readonly sizeGb: number };
  readonly digests: Readonly<Record<string, string>>;
}

export const prometheusService = "prometheus";
export const prometheusPort = 9090;
export const prometheusLabels: Readonly<Record<string, string>> = { app: "prometheus" };

/** User `nobody` of the image. */
const userId = 65534;

/** Prometheus that finds Triton's and the load generator's pods, with its data on a disk that Pulumi owns. */
export class Prometheus extends pulumi.ComponentResource {
  constructor(name: string, args: PrometheusArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Prometheus", name, { retentionDays: args.retentionDays }, opts);
    const { namespace } = args;
    const options = dropsWithCluster(this, args);
    const account = new k8s.core.v1.ServiceAccount(
      `${name}-account`,
      { metadata: { name: prometheusService, namespace } },
      options,
    );
    this.addDiscoveryRights(name, args);
    const config = new k8s.core.v1.ConfigMap(
      `${name}-config`,
      { metadata: { name: "prometheus-config", namespace }, data: { ...args.files } },
      options,
    );
    new k8s.networking.v1.NetworkPolicy(
      `${name}-policy`,
      {
        metadata: { name: prometheusService, namespace },
        spec: allow(
          prometheusLabels,
          [from([pods(args.namespaceName)], [prometheusPort])],
          [toKubernetesApi, ...args.scraped.map((target) => to([pods(target.name)], target.ports))],
        ),
      },
      options,
    );
    const volume = new StaticVolume(
      `${name}-data`,
      {
        provider: args.provider,
        cluster: args.cluster,
        namespace,
        claimName: "prometheus-data",
        diskHandle: args.disk.handle,
        zone: args.disk.zone,
        sizeGb: args.disk.sizeGb,
      },
      { parent: this },
    );
    const service = new k8s.core.v1.Service(
      `${name}-service`,
      {
        metadata: { name: prometheusService, namespace, annotations: { "pulumi.com/skipAwait": "true" } },
        spec: {
          type: "ClusterIP",
          selector: { ...prometheusLabels },
          ports: [{ name: "http", port: prometheusPort, targetPort: "http" }],
        },
      },
      options,
    );
    new k8s.apps.v1.StatefulSet(
      name,
      {
        metadata: { name: prometheusService, namespace, labels: { ...prometheusLabels } },
        spec: {
          serviceName: prometheusService,
          replicas: 1,
          selector: { matchLabels: { ...prometheusLabels } },
          template: prometheusPod(args),
        },
      },
      deletedBeforeCluster(this, args, {
        dependsOn: [account, config, service, volume],
        customTimeouts: { create: "15m", update: "15m", delete: "10m" },
      }),
    );
    this.registerOutputs({});
  }

  private addDiscoveryRights(name: string, args: PrometheusArgs): void {
    args.scraped.forEach((target, index) => {
      const metadata = { name: "prometheus-discovery", namespace: target.namespace };
      const role = new k8s.rbac.v1.Role(
        `${name}-discovery-${index}`,
        { metadata, rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"] }] },
        dropsWithCluster(this, args),
      );
      new k8s.rbac.v1.RoleBinding(
        `${name}-discovery-${index}`,
        {
          metadata,
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: role.metadata.name },
          subjects: [{ kind: "ServiceAccount", name: prometheusService, namespace: args.namespace }],
        },
        dropsWithCluster(this, args),
      );
    });
  }
}

function prometheusPod(args: PrometheusArgs): k8s.types.input.core.v1.PodTemplateSpec {
  const sampleMb = Math.floor(args.disk.sizeGb * 1000 * sampleShare);
  const probe = (path: string) => ({
    httpGet: { path, port: "http" },
    periodSeconds: 10,
    failureThreshold: 6,
  });
  return {
    metadata: {
      labels: { ...prometheusLabels },
      // Prometheus reads its configuration at start: a change must restart the pod.
      annotations: { "triton-slo/config-hash": hashOf(args.files) },
    },
    spec: {
      serviceAccountName: prometheusService,
      securityContext: restrictedPod(userId),
      nodeSelector: { [poolLabel]: "system" },
      terminationGracePeriodSeconds: 60,
      volumes: [
        { name: "config", configMap: { name: "prometheus-config" } },
        { name: "data", persistentVolumeClaim: { claimName: "prometheus-data" } },
      ],
      containers: [
        {
          name: "prometheus",
          image: pinned(images.prometheus, args.digests),
          args: [
            "--config.file=/etc/prometheus/prometheus.yml",
            "--storage.tsdb.path=/prometheus",
            `--storage.tsdb.retention.time=${args.retentionDays}d`,
            `--storage.tsdb.retention.size=${sampleMb}MB`,
          ],
          ports: [{ name: "http", containerPort: prometheusPort }],
          startupProbe: { ...probe("/-/ready"), failureThreshold: 60 },
          readinessProbe: probe("/-/ready"),
          livenessProbe: probe("/-/healthy"),
          resources: { requests: { cpu: "200m", memory: "1Gi" }, limits: { memory: "2Gi" } },
          securityContext: restrictedContainer(true),
          volumeMounts: [
            { name: "config", mountPath: "/etc/prometheus", readOnly: true },
            { name: "data", mountPath: "/prometheus" },
          ],
        },
      ],
    },
  };
}

/** Short hash of files by name, for annotations. */
export function hashOf(files: Readonly<Record<string, string>>): string {
  return createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
}
