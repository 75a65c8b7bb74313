import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { images, pinned } from "./images";
import { allow, pods, to, toKubernetesApi } from "./network-policies";
import { poolLabel } from "./node-pool";
import { restrictedContainer, restrictedPod } from "./pod-security";
import { hashOf, prometheusLabels, prometheusPort } from "./prometheus";
import { awaited } from "./rollout";

export interface MetricsAdapterArgs extends InCluster {
  readonly namespace: pulumi.Input<string>;
  readonly namespaceName: string;
  /** URL of Prometheus. */
  readonly prometheusUrl: string;
  /** prometheus-adapter's rules file. */
  readonly rules: string;
  readonly digests: Readonly<Record<string, string>>;
}

const adapterName = "prometheus-adapter";
const adapterLabels: Readonly<Record<string, string>> = { app: adapterName };
const adapterPort = 6443;
const rbac = "rbac.authorization.k8s.io";
const customMetrics = "custom.metrics.k8s.io";

/** User of the distroless image. */
const userId = 10001;

/**
 * prometheus-adapter: answers the autoscaler's question for custom metrics out of Prometheus. One cluster has one; do not
 * add it to a cluster that already serves `custom.metrics.k8s.io`.
 */
export class MetricsAdapter extends pulumi.ComponentResource {
  /** Depend on it to find the metrics API in place. */
  public readonly apiService: k8s.apiregistration.v1.APIService;

  constructor(name: string, args: MetricsAdapterArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:MetricsAdapter", name, {}, opts);
    const { namespace } = args;
    const options = dropsWithCluster(this, args);
    const account = new k8s.core.v1.ServiceAccount(
      name,
      { metadata: { name: adapterName, namespace } },
      options,
    );
    const bindings = this.addRights(name, args);
    const files = { "config.yaml": args.rules };
    const config = new k8s.core.v1.ConfigMap(
      `${name}-config`,
      { metadata: { name: `${adapterName}-config`, namespace }, data: files },
      options,
    );
    const policy = new k8s.networking.v1.NetworkPolicy(
      `${name}-policy`,
      {
        metadata: { name: adapterName, namespace },
        spec: allow(
          adapterLabels,
          // The API server calls through a tunnel whose address is not known; the port speaks TLS and checks who calls.
          [{ ports: [{ protocol: "TCP", port: adapterPort }] }],
          [to([pods(args.namespaceName, prometheusLabels)], [prometheusPort]), toKubernetesApi],
        ),
      },
      options,
    );
    const deployment = new k8s.apps.v1.Deployment(
      name,
      {
        metadata: { name: adapterName, namespace, labels: { ...adapterLabels } },
        spec: {
          replicas: 1,
          ...awaited,
          selector: { matchLabels: { ...adapterLabels } },
          template: adapterPod(args, hashOf(files)),
        },
      },
      dropsWithCluster(this, args, { dependsOn: [account, config, policy, ...bindings] }),
    );
    const service = new k8s.core.v1.Service(
      `${name}-service`,
      {
        metadata: { name: adapterName, namespace },
        spec: {
          type: "ClusterIP",
          selector: { ...adapterLabels },
          ports: [{ name: "https", port: 443, targetPort: "https" }],
        },
      },
      options,
    );
    // Deleted before what answers it: an API without a server blocks the deletion of every namespace of the cluster.
    this.apiService = new k8s.apiregistration.v1.APIService(
      `${name}-api`,
      {
        metadata: { name: `v1beta1.${customMetrics}` },
        spec: {
          group: customMetrics,
          version: "v1beta1",
          groupPriorityMinimum: 100,
          versionPriority: 100,
          // The adapter signs its own certificate at start.
          insecureSkipTLSVerify: true,
          service: { name: adapterName, namespace, port: 443 },
        },
      },
      dropsWithCluster(this, args, { dependsOn: [deployment, service] }),
    );
    this.registerOutputs({});
  }

  /** Rights of the adapter: read pods, check who calls; and the autoscaler's right to read the metrics. */
  private addRights(name: string, args: MetricsAdapterArgs): pulumi.Resource[] {
    const options = dropsWithCluster(this, args);
    const adapter = { kind: "ServiceAccount", name: adapterName, namespace: args.namespace };
    const autoscaler = {
      kind: "ServiceAccount",
      name: "horizontal-pod-autoscaler",
      namespace: "kube-system",
    };
    const role = (suffix: string, rule: k8s.types.input.rbac.v1.PolicyRule) =>
      new k8s.rbac.v1.ClusterRole(
        `${name}-${suffix}`,
        { metadata: { name: `${args.namespaceName}-${adapterName}-${suffix}` }, rules: [rule] },
        options,
      ).metadata.name;
    const bind = (suffix: string, roleName: pulumi.Input<string>, who: k8s.types.input.rbac.v1.Subject) =>
      new k8s.rbac.v1.ClusterRoleBinding(
        `${name}-${suffix}`,
        {
          metadata: { name: `${args.namespaceName}-${adapterName}-${suffix}` },
          roleRef: { apiGroup: rbac, kind: "ClusterRole", name: roleName },
          subjects: [who],
        },
        options,
      );
    const read = { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["get", "list", "watch"] };
    const readMetrics = { apiGroups: [customMetrics], resources: ["*"], verbs: ["get", "list"] };
    const reader = new k8s.rbac.v1.RoleBinding(
      `${name}-authentication`,
      {
        metadata: { name: `${args.namespaceName}-${adapterName}`, namespace: "kube-system" },
        roleRef: { apiGroup: rbac, kind: "Role", name: "extension-apiserver-authentication-reader" },
        subjects: [adapter],
      },
      options,
    );
    return [
      reader,
      bind("delegator", "system:auth-delegator", adapter),
      bind("reader", role("reader", read), adapter),
      bind("metrics", role("metrics", readMetrics), autoscaler),
    ];
  }
}

function adapterPod(args: MetricsAdapterArgs, configHash: string): k8s.types.input.core.v1.PodTemplateSpec {
  const probe = (path: string) => ({ httpGet: { path, port: "https", scheme: "HTTPS" }, periodSeconds: 10 });
  return {
    metadata: { labels: { ...adapterLabels }, annotations: { "triton-slo/config-hash": configHash } },
    spec: {
      serviceAccountName: adapterName,
      securityContext: restrictedPod(userId),
      nodeSelector: { [poolLabel]: "system" },
      volumes: [
        { name: "config", configMap: { name: `${adapterName}-config` } },
        { name: "tmp", emptyDir: { sizeLimit: "64Mi" } },
      ],
      containers: [
        {
          name: "adapter",
          image: pinned(images.prometheusAdapter, args.digests),
          args: [
            `--secure-port=${adapterPort}`,
            "--cert-dir=/tmp/certificates",
            `--prometheus-url=${args.prometheusUrl}`,
            "--metrics-relist-interval=30s",
            "--config=/etc/adapter/config.yaml",
          ],
          ports: [{ name: "https", containerPort: adapterPort }],
          startupProbe: { ...probe("/livez"), failureThreshold: 30 },
          readinessProbe: { ...probe("/readyz"), failureThreshold: 3 },
          livenessProbe: { ...probe("/livez"), failureThreshold: 6 },
          resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
          securityContext: restrictedContainer(true),
          volumeMounts: [
            { name: "config", mountPath: "/etc/adapter", readOnly: true },
            { name: "tmp", mountPath: "/tmp" },
          ],
        },
      ],
    },
  };
}
