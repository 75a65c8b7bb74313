import { isObject, listAt, objectsAt, textAt, types, valueAt, type Properties, type Rule } from "../rule";

const anywhere = new Set(["0.0.0.0/0", "::/0"]);

/** Annotation that keeps a load balancer of GKE inside the VPC. */
const isInternal = (service: Properties): boolean => {
  const annotations = valueAt(service, "metadata.annotations");
  return isObject(annotations) && annotations["networking.gke.io/load-balancer-type"] === "Internal";
};

const noPublicService: Rule = {
  name: "no-public-service",
  description: "No Service, Ingress or Gateway is reachable from outside the VPC.",
  fix: "Use a ClusterIP Service and reach it by port-forward or through Identity-Aware Proxy.",
  appliesTo: (type) =>
    type === "kubernetes:core/v1:Service" ||
    /^kubernetes:(networking|gateway)[^:]*:(Ingress|Gateway)$/.test(type),
  violations: ({ type, properties }) => {
    if (!type.endsWith(":Service")) return [`${type.split(":")[2] ?? type} makes a public load balancer`];
    const serviceType = textAt(properties, "spec.type");
    return [
      ...(serviceType === "LoadBalancer" && !isInternal(properties)
        ? ["type LoadBalancer gets a public address"]
        : []),
      ...(serviceType === "NodePort" ? ["type NodePort opens a port on every node"] : []),
      ...(listAt(properties, "spec.externalIPs").length > 0
        ? ["externalIPs take traffic from outside the cluster"]
        : []),
    ];
  },
};

const noPublicAddress: Rule = {
  name: "no-public-address",
  description: "No machine, load balancer or address of the project is public.",
  fix: "Leave out accessConfigs and external addresses; Cloud NAT and Identity-Aware Proxy need none.",
  appliesTo: types(
    "gcp:compute/instance:Instance",
    "gcp:compute/address:Address",
    "gcp:compute/globalAddress:GlobalAddress",
    "gcp:compute/forwardingRule:ForwardingRule",
    "gcp:compute/globalForwardingRule:GlobalForwardingRule",
  ),
  violations: ({ type, properties }) => {
    if (type.endsWith(":Instance")) {
      const open = objectsAt(properties, "networkInterfaces").filter(
        (nic) => listAt(nic, "accessConfigs").length + listAt(nic, "ipv6AccessConfigs").length > 0,
      );
      return open.map(() => "accessConfigs give the machine a public address");
    }
    if (type.endsWith("Address")) {
      return textAt(properties, "addressType") === "INTERNAL" ? [] : ["addressType is not INTERNAL"];
    }
    return textAt(properties, "loadBalancingScheme").startsWith("INTERNAL")
      ? []
      : ["loadBalancingScheme is not internal"];
  },
};

const privateCluster: Rule = {
  name: "private-cluster",
  description: "Nodes have no public addresses, and a public control plane admits named networks only.",
  fix: "Set privateClusterConfig.enablePrivateNodes, and masterAuthorizedNetworksConfig without 0.0.0.0/0.",
  appliesTo: types("gcp:container/cluster:Cluster"),
  violations: ({ properties }) => {
    const ranges = objectsAt(properties, "masterAuthorizedNetworksConfig.cidrBlocks").map((block) =>
      textAt(block, "cidrBlock"),
    );
    const isPublic = valueAt(properties, "privateClusterConfig.enablePrivateEndpoint") !== true;
    return [
      ...(valueAt(properties, "privateClusterConfig.enablePrivateNodes") === true
        ? []
        : ["nodes have public addresses"]),
      ...(isPublic && ranges.length === 0 ? ["the public control plane admits everybody"] : []),
      ...(ranges.some((range) => anywhere.has(range)) ? ["the control plane admits the whole internet"] : []),
    ];
  },
};

const effectiveNetworkPolicies: Rule = {
  name: "effective-network-policies",
  description: "The cluster enforces NetworkPolicies.",
  fix: 'Set datapathProvider to "ADVANCED_DATAPATH".',
  appliesTo: types("gcp:container/cluster:Cluster"),
  violations: ({ properties }) =>
    textAt(properties, "datapathProvider") === "ADVANCED_DATAPATH" ||
    valueAt(properties, "networkPolicy.enabled") === true
      ? []
      : ["NetworkPolicies would be accepted and ignored"],
};

const closedFirewall: Rule = {
  name: "closed-firewall",
  description: "No firewall rule admits the whole internet.",
  fix: "Name the source ranges, e.g. 35.235.240.0/20 for Identity-Aware Proxy.",
  appliesTo: types("gcp:compute/firewall:Firewall"),
  violations: ({ properties }) => {
    if (textAt(properties, "direction") === "EGRESS" || objectsAt(properties, "allows").length === 0)
      return [];
    const ranges = listAt(properties, "sourceRanges");
    const sources =
      ranges.length +
      listAt(properties, "sourceTags").length +
      listAt(properties, "sourceServiceAccounts").length;
    // Without any source Google takes 0.0.0.0/0.
    const open = sources === 0 || ranges.some((range) => typeof range === "string" && anywhere.has(range));
    return open ? ["admits connections from anywhere"] : [];
  },
};

export const networkRules: readonly Rule[] = [
  noPublicService,
  noPublicAddress,
  privateCluster,
  effectiveNetworkPolicies,
  closedFirewall,
];
