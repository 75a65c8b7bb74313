import * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import * as random from "@pulumi/random";
import { dropsWithCluster, type InCluster } from "./in-cluster";
import { images, pinned } from "./images";
import { allow, pods, to } from "./network-policies";
import { poolLabel } from "./node-pool";
import { restrictedContainer, restrictedPod } from "./pod-security";
import { hashOf, prometheusLabels, prometheusPort } from "./prometheus";
import { awaited } from "./rollout";

export interface GrafanaArgs extends InCluster {
  readonly namespace: pulumi.Input<string>;
  readonly namespaceName: string;
  /** Data-source provisioning file. */
  readonly dataSources: string;
  /** Dashboard JSON by file name. */
  readonly dashboards: Readonly<Record<string, string>>;
  readonly digests: Readonly<Record<string, string>>;
}

export const grafanaService = "grafana";
export const grafanaPort = 3000;
export const grafanaSecretName = "grafana-admin";
export const grafanaLabels: Readonly<Record<string, string>> = { app: "grafana" };

/** User `grafana` of the image. */
const userId = 472;

/** Tells Grafana where the dashboards lie. */
const dashboardProvider = JSON.stringify({
  apiVersion: 1,
  providers: [
    { name: "stack", type: "file", allowUiUpdates: false, options: { path: "/var/lib/dashboards" } },
  ],
});

/** Grafana with provisioned data source and dashboards and a generated password. It keeps nothing: all is in the stack. */
export class Grafana extends pulumi.ComponentResource {
  /** Password of the user `admin`; secret. */
  public readonly adminPassword: pulumi.Output<string>;

  constructor(name: string, args: GrafanaArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:Grafana", name, { dashboards: Object.keys(args.dashboards) }, opts);
    const { namespace } = args;
    const options = dropsWithCluster(this, args);
    const password = new random.RandomPassword(
      `${name}-password`,
      { length: 24, special: false },
      { parent: this },
    );
    const secret = new k8s.core.v1.Secret(
      `${name}-admin`,
      { metadata: { name: grafanaSecretName, namespace }, stringData: { password: password.result } },
      options,
    );
    const files = {
      "grafana-datasources": { "prometheus.yaml": args.dataSources },
      "grafana-providers": { "stack.yaml": dashboardProvider },
      "grafana-dashboards": { ...args.dashboards },
    };
    const configs = Object.entries(files).map(
      ([configName, data]) =>
        new k8s.core.v1.ConfigMap(
          `${name}-${configName}`,
          { metadata: { name: configName, namespace }, data },
          options,
        ),
    );
    new k8s.networking.v1.NetworkPolicy(
      `${name}-policy`,
      {
        metadata: { name: grafanaService, namespace },
        spec: allow(grafanaLabels, [], [to([pods(args.namespaceName, prometheusLabels)], [prometheusPort])]),
      },
      options,
    );
    new k8s.core.v1.Service(
      `${name}-service`,
      {
        metadata: { name: grafanaService, namespace, annotations: { "pulumi.com/skipAwait": "true" } },
        spec: {
          type: "ClusterIP",
          selector: { ...grafanaLabels },
          ports: [{ name: "http", port: grafanaPort, targetPort: "http" }],
        },
      },
      options,
    );
    const contents = { ...files["grafana-datasources"], ...files["grafana-providers"], ...args.dashboards };
    new k8s.apps.v1.Deployment(
      name,
      {
        metadata: { name: grafanaService, namespace, labels: { ...grafanaLabels } },
        spec: {
          replicas: 1,
          ...awaited,
          selector: { matchLabels: { ...grafanaLabels } },
          template: grafanaPod(pinned(images.grafana, args.digests), hashOf(contents)),
        },
      },
      dropsWithCluster(this, args, { dependsOn: [secret, ...configs] }),
    );
    this.adminPassword = pulumi.secret(password.result);
    this.registerOutputs({ adminPassword: this.adminPassword });
  }
}

function grafanaPod(image: string, configHash: string): k8s.types.input.core.v1.PodTemplateSpec {
  const probe = { httpGet: { path: "/api/health", port: "http" }, periodSeconds: 10, failureThreshold: 6 };
  const mount = (name: string, mountPath: string) => ({ name, mountPath });
  return {
    metadata: { labels: { ...grafanaLabels }, annotations: { "triton-slo/config-hash": configHash } },
    spec: {
      automountServiceAccountToken: false,
      securityContext: restrictedPod(userId),
      nodeSelector: { [poolLabel]: "system" },
      volumes: [
        { name: "datasources", configMap: { name: "grafana-datasources" } },
        { name: "providers", configMap: { name: "grafana-providers" } },
        { name: "dashboards", configMap: { name: "grafana-dashboards" } },
        { name: "admin", secret: { secretName: grafanaSecretName } },
        { name: "data", emptyDir: { sizeLimit: "1Gi" } },
        { name: "tmp", emptyDir: { sizeLimit: "256Mi" } },
      ],
      containers: [
        {
          name: "grafana",
          image,
          env: [
            { name: "GF_SECURITY_ADMIN_USER", value: "admin" },
            { name: "GF_SECURITY_ADMIN_PASSWORD__FILE", value: "/etc/grafana-admin/password" },
            { name: "GF_ANALYTICS_REPORTING_ENABLED", value: "false" },
            { name: "GF_ANALYTICS_CHECK_FOR_UPDATES", value: "false" },
            { name: "GF_USERS_ALLOW_SIGN_UP", value: "false" },
          ],
          ports: [{ name: "http", containerPort: grafanaPort }],
          readinessProbe: probe,
          livenessProbe: { ...probe, initialDelaySeconds: 30 },
          resources: { requests: { cpu: "100m", memory: "256Mi" }, limits: { memory: "512Mi" } },
          securityContext: restrictedContainer(true),
          volumeMounts: [
            mount("datasources", "/etc/grafana/provisioning/datasources"),
            mount("providers", "/etc/grafana/provisioning/dashboards"),
            mount("dashboards", "/var/lib/dashboards"),
            mount("admin", "/etc/grafana-admin"),
            mount("data", "/var/lib/grafana"),
            mount("tmp", "/tmp"),
          ],
        },
      ],
    },
  };
}
