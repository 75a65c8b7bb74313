import type { ConfigRule } from "../config-rules";
import type { ConfigKey } from "../config-keys";
import { contains, overlaps, parseCidr } from "../cidr";

const existingNetworkKeys = [
  "existingNetwork",
  "existingSubnetwork",
  "existingPodRange",
  "existingServiceRange",
] as const;

/** Rules of project, network, cluster and money. */
export const clusterRules: readonly ConfigRule[] = [
  {
    keys: ["project"],
    problem: ({ project }) =>
      /^[a-z][a-z0-9-]{4,28}[a-z0-9]$/.test(project)
        ? null
        : project === ""
          ? "is required; set it with: pulumi config set project MY-PROJECT-ID"
          : `"${project}" is not a project id (6 to 30 lower-case letters, digits and hyphens)`,
  },
  {
    keys: ["region"],
    problem: ({ region }) =>
      /^[a-z]+-[a-z]+\d+$/.test(region) ? null : `"${region}" is not a region; use e.g. us-central1`,
  },
  {
    keys: ["labels"],
    problem: ({ labels }) => {
      const bad = Object.entries(labels).filter(
        ([key, value]) => !/^[a-z][a-z0-9_-]{0,62}$/.test(key) || !/^[a-z0-9_-]{0,63}$/.test(value),
      );
      return bad.length > 0
        ? `${bad.map(([key, value]) => `${key}=${value}`).join(", ")}: labels have lower-case letters, digits, _ and - only, at most 63`
        : null;
    },
  },
  {
    keys: ["namespacePrefix"],
    problem: ({ namespacePrefix }) =>
      /^([a-z][a-z0-9-]{0,40})?$/.test(namespacePrefix)
        ? null
        : `"${namespacePrefix}" cannot start a namespace; use lower-case letters, digits and -, e.g. team-a-`,
  },
  {
    keys: ["billingAccount", "budget"],
    problem: ({ billingAccount, budget }) => {
      if (budget === 0) return null;
      return /^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$/.test(billingAccount)
        ? null
        : "must be the account's id XXXXXX-XXXXXX-XXXXXX when budget is set; see: gcloud billing accounts list";
    },
  },
  {
    keys: ["budgetCurrency"],
    problem: ({ budgetCurrency }) =>
      /^[A-Z]{3}$/.test(budgetCurrency) ? null : `"${budgetCurrency}" is not a currency code; use e.g. USD`,
  },
  {
    keys: ["existingNetwork", "existingSubnetwork", "existingPodRange", "existingServiceRange"],
    problem: (config) => {
      const missing = existingNetworkKeys.filter((key) => config[key] === "");
      return missing.length === 0 || missing.length === existingNetworkKeys.length
        ? null
        : `an existing network needs all of ${existingNetworkKeys.join(", ")}; missing: ${missing.join(", ")}`;
    },
  },
  {
    keys: ["existingCluster", "existingNetwork", "conversionVm"],
    problem: ({ existingCluster, existingNetwork, conversionVm }) =>
      existingCluster !== "" && existingNetwork === "" && conversionVm
        ? "has a network of its own, and the conversion VM needs one too; set the existingNetwork keys, or conversionVm to false"
        : null,
  },
  ...(["subnetCidr", "podCidr", "serviceCidr"] as const).map((key) => cidrRule(key)),
  {
    keys: ["podCidr", "subnetCidr", "serviceCidr", "existingNetwork"],
    problem: ({ existingNetwork, ...config }) => {
      if (existingNetwork !== "") return null;
      const ranges = (["subnetCidr", "podCidr", "serviceCidr"] as const).map((key) => ({
        key,
        range: parseCidr(config[key]),
      }));
      for (const [index, a] of ranges.entries()) {
        for (const b of ranges.slice(index + 1)) {
          if (a.range && b.range && overlaps(a.range, b.range))
            return `${a.key} and ${b.key} overlap; use separate ranges`;
        }
      }
      return null;
    },
  },
  {
    keys: ["authorizedNetworks", "controlPlaneAccess"],
    problem: ({ authorizedNetworks, controlPlaneAccess }) => {
      const bad = authorizedNetworks.filter((cidr) => parseCidr(cidr) === undefined);
      if (bad.length > 0) return `${bad.join(", ")} is not a CIDR block; use e.g. 203.0.113.0/24`;
      if (authorizedNetworks.some((cidr) => contains(cidr, "0.0.0.0/0")))
        return "0.0.0.0/0 opens the control plane to everybody; name your own networks";
      if (controlPlaneAccess === "public" && authorizedNetworks.length === 0) {
        return "must name the networks that may reach the public control plane; or use controlPlaneAccess dns";
      }
      return controlPlaneAccess !== "public" && authorizedNetworks.length > 0
        ? `has no effect with controlPlaneAccess ${controlPlaneAccess}; use public, or remove it`
        : null;
    },
  },
];

function cidrRule(key: ConfigKey & ("subnetCidr" | "podCidr" | "serviceCidr")): ConfigRule {
  return {
    keys: [key],
    problem: (config) =>
      parseCidr(config[key]) === undefined
        ? `"${config[key]}" is not a CIDR block; use e.g. 10.10.0.0/20`
        : null,
  };
}
