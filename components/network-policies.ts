import type * as k8s from "@pulumi/kubernetes";

type PolicySpec = k8s.types.input.networking.v1.NetworkPolicySpec;
type Peer = k8s.types.input.networking.v1.NetworkPolicyPeer;
type EgressRule = k8s.types.input.networking.v1.NetworkPolicyEgressRule;
type IngressRule = k8s.types.input.networking.v1.NetworkPolicyIngressRule;

/** Pods of one namespace, chosen by labels; all of them when no labels are given. */
export function pods(namespace: string, matchLabels: Readonly<Record<string, string>> = {}): Peer {
  return {
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
    podSelector: { matchLabels: { ...matchLabels } },
  };
}

function tcp(ports: readonly number[]): { protocol: string; port: number }[] {
  return ports.map((port) => ({ protocol: "TCP", port }));
}

/** TCP ports open to the given peers. */
export function from(peers: readonly Peer[], ports: readonly number[]): IngressRule {
  return { from: [...peers], ports: tcp(ports) };
}

/** TCP connections to the given peers. */
export function to(peers: readonly Peer[], ports: readonly number[]): EgressRule {
  return { to: [...peers], ports: tcp(ports) };
}

/** Nothing in, nothing out, for every pod of the namespace; other policies then add what is needed. */
export const denyAll: PolicySpec = { podSelector: {}, policyTypes: ["Ingress", "Egress"] };

/** Name resolution: the cluster's DNS pods, and the node-local cache in front of them. */
export const allowDns: PolicySpec = {
  podSelector: {},
  policyTypes: ["Egress"],
  egress: [
    {
      to: [
        pods("kube-system", { "k8s-app": "kube-dns" }),
        pods("kube-system", { "k8s-app": "node-local-dns" }),
        { ipBlock: { cidr: "169.254.20.10/32" } },
      ],
      ports: [
        { protocol: "UDP", port: 53 },
        { protocol: "TCP", port: 53 },
      ],
    },
  ],
};

/**
 * Workload Identity's metadata server. With Dataplane V2 pods reach it at 169.254.169.254:80; other data planes redirect to
 * 169.254.169.252:988 (cloud.google.com/kubernetes-engine/docs/how-to/workload-identity).
 */
export const toMetadataServer: readonly EgressRule[] = [
  { to: [{ ipBlock: { cidr: "169.254.169.254/32" } }], ports: tcp([80]) },
  { to: [{ ipBlock: { cidr: "169.254.169.252/32" } }], ports: tcp([988]) },
];

/** HTTPS anywhere outside the private ranges: Google's APIs have no fixed addresses. */
export const toGoogleApis: EgressRule = {
  to: [{ ipBlock: { cidr: "0.0.0.0/0", except: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"] } }],
  ports: tcp([443]),
};

/** The Kubernetes API server, whose address may be public or private. */
export const toKubernetesApi: EgressRule = { to: [{ ipBlock: { cidr: "0.0.0.0/0" } }], ports: tcp([443]) };

/** A policy for the chosen pods: only what the rules allow, in both directions. */
export function allow(
  matchLabels: Readonly<Record<string, string>>,
  ingress: readonly IngressRule[],
  egress: readonly EgressRule[],
): PolicySpec {
  return {
    podSelector: { matchLabels: { ...matchLabels } },
    policyTypes: ["Ingress", "Egress"],
    ingress: [...ingress],
    egress: [...egress],
  };
}
