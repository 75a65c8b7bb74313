import * as components from "../../components";
import type { StackConfig } from "../derived-config";
import type { Project } from "./project";

/**
 * VPC, subnetwork and NAT, or existing ones. An adopted cluster brings its network; then only a conversion VM needs one, and
 * without it there is none.
 */
export function createNetwork(config: StackConfig, project: Project): components.Network | undefined {
  if (config.existingCluster !== "" && !config.conversionVm) return undefined;
  const { region, subnetCidr, podCidr, serviceCidr } = config;
  return new components.Network(
    "network",
    {
      project: config.project,
      region,
      subnetCidr,
      podCidr,
      serviceCidr,
      sshThroughIap: config.sshThroughIap && config.conversionVm,
      existing: existingNetwork(config),
    },
    project.after(project.services),
  );
}

function existingNetwork(config: StackConfig): components.ExistingNetwork | undefined {
  if (config.existingNetwork === "") return undefined;
  return {
    network: config.existingNetwork,
    subnetwork: config.existingSubnetwork,
    podRange: config.existingPodRange,
    serviceRange: config.existingServiceRange,
  };
}
