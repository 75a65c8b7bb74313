import type { ConfigRule } from "../config-rules";
import { accelerators, allocatable, machineFamilies, machineShape } from "../machines";
import { t4Regions } from "../zones";

/** Rules of GPU nodes: type, machine, zones, driver, and room for the servers. */
export const gpuRules: readonly ConfigRule[] = [
  {
    keys: ["gpuType"],
    problem: ({ gpuType }) =>
      gpuType in accelerators
        ? null
        : `"${gpuType}" is not known; use one of ${Object.keys(accelerators).join(", ")}`,
  },
  {
    keys: ["gpuMachineType", "gpuType", "gpusPerNode"],
    problem: ({ gpuMachineType, gpuType, gpusPerNode }) =>
      machineProblem(gpuMachineType, gpuType, gpusPerNode),
  },
  {
    keys: ["conversionMachineType", "gpuType", "conversionVm"],
    problem: ({ conversionVm, conversionMachineType, gpuType }) =>
      conversionVm ? machineProblem(conversionMachineType, gpuType, 1) : null,
  },
  {
    keys: ["gpusPerNode", "gpuType"],
    problem: ({ gpusPerNode, gpuType }) => {
      const counts = Object.keys(accelerators[gpuType]?.largestVcpus ?? {});
      return counts.length === 0 || counts.includes(String(gpusPerNode))
        ? null
        : `a machine cannot have ${gpusPerNode} of ${gpuType}; use ${counts.join(", ")}`;
    },
  },
  {
    keys: ["zones", "region", "gpuType", "acceleratorZones"],
    problem: ({ zones, zonesUsed, region, gpuType, knownZones }) => {
      if (!(gpuType in accelerators)) return null;
      const outside = zones.filter((zone) => !zone.startsWith(`${region}-`));
      if (outside.length > 0)
        return `${outside.join(", ")} is not in region ${region}; use zones of one region`;
      const unknown = zonesUsed.filter((zone) => !knownZones.includes(zone));
      if (unknown.length > 0) {
        return (
          `${unknown.join(", ")} is not known to have ${gpuType}; known in ${region}: ${knownZones.join(", ") || "none"}. ` +
          `If gcloud compute accelerator-types list shows it, add it to acceleratorZones`
        );
      }
      return zonesUsed.length > 0
        ? null
        : `no zone of ${region} is known to have ${gpuType}; use one of the regions ${t4Regions.join(", ")}, or set acceleratorZones`;
    },
  },
  {
    keys: ["managedDcgm", "driverMode"],
    problem: ({ managedDcgm, driverMode }) =>
      managedDcgm && driverMode === "daemonset"
        ? "brings Google's own driver, which the DaemonSet's driver then masks; set driverMode to gke-default, or this to false"
        : null,
  },
  {
    keys: ["gpuImageType", "driverMode"],
    problem: ({ gpuImageType, driverMode }) =>
      gpuImageType === "COS_CONTAINERD" || driverMode === "gke-default"
        ? null
        : `driverMode ${driverMode} works on COS_CONTAINERD only; use that, or driverMode gke-default`,
  },
  {
    keys: ["gpuReservation", "gpuSpot"],
    problem: ({ gpuReservation, gpuSpot }) =>
      gpuReservation !== "" && gpuSpot ? "cannot be used by Spot machines; set gpuSpot to false" : null,
  },
  {
    keys: ["gpuMinNodes", "gpuMaxNodes"],
    problem: ({ gpuMinNodes, gpuMaxNodes }) =>
      gpuMinNodes > gpuMaxNodes ? `${gpuMinNodes} is above gpuMaxNodes ${gpuMaxNodes}` : null,
  },
  {
    keys: ["gpuInitialNodes", "gpuMaxNodes", "zones", "acceleratorZones", "region", "gpuType"],
    problem: ({ gpuInitialNodes, zonesUsed, gpuMaxNodes }) =>
      gpuInitialNodes * zonesUsed.length > gpuMaxNodes
        ? `counts per zone: ${gpuInitialNodes} in each of ${zonesUsed.length} zones is above gpuMaxNodes ${gpuMaxNodes}; ` +
          `name fewer zones, or use a smaller number`
        : null,
  },
  {
    keys: ["replicas", "autoscaleMaxReplicas", "autoscale", "gpuMaxNodes", "gpusPerNode"],
    problem: ({ replicas, autoscale, autoscaleMaxReplicas, gpuMaxNodes, gpusPerNode }) => {
      const servers = autoscale ? autoscaleMaxReplicas : replicas;
      const gpus = gpuMaxNodes * gpusPerNode;
      return servers <= gpus
        ? null
        : `${servers} servers need ${servers} GPUs, but the pool has at most ${gpus} (gpuMaxNodes ${gpuMaxNodes} x gpusPerNode ${gpusPerNode}); ` +
            `raise gpuMaxNodes to ${Math.ceil(servers / gpusPerNode)}, or lower it`;
    },
  },
  {
    keys: ["tritonCpu", "gpuMachineType", "gpusPerNode"],
    problem: ({ tritonCpu, gpuMachineType, gpusPerNode }) => {
      const shape = machineShape(gpuMachineType);
      if (shape === undefined) return null;
      const room = allocatable(shape).cpu / gpusPerNode;
      return tritonCpu <= room
        ? null
        : `${tritonCpu} cores do not fit: ${gpuMachineType} leaves ${room.toFixed(1)} for each of its ${gpusPerNode} servers; use at most ${Math.floor(room)}`;
    },
  },
  {
    keys: ["tritonMemoryGi", "shmGi", "gpuMachineType", "gpusPerNode"],
    problem: ({ tritonMemoryGi, shmGi, gpuMachineType, gpusPerNode }) => {
      const shape = machineShape(gpuMachineType);
      if (shape === undefined) return null;
      const room = allocatable(shape).memoryGi / gpusPerNode;
      return tritonMemoryGi + shmGi + pinnedPoolGi <= room
        ? null
        : `${tritonMemoryGi} GiB and ${shmGi} GiB of shmGi do not fit: ${gpuMachineType} leaves ${room.toFixed(1)} GiB for each of its ` +
            `${gpusPerNode} servers; use at most ${Math.floor(room - shmGi - pinnedPoolGi)}`;
    },
  },
];

/** Pinned memory that Triton adds, GiB, rounded up. */
const pinnedPoolGi = 0.25;

function machineProblem(machineType: string, gpuType: string, gpus: number): string | null {
  const accelerator = accelerators[gpuType];
  if (accelerator === undefined) return null;
  const shape = machineShape(machineType);
  if (shape === undefined) {
    return `"${machineType}" is not known; use a predefined type of ${machineFamilies.join(", ")}`;
  }
  if (!accelerator.machineFamilies.includes(shape.family)) {
    return `${gpuType} cannot be attached to ${machineType}; use a machine of family ${accelerator.machineFamilies.join(", ")}`;
  }
  const largest = accelerator.largestVcpus[gpus];
  return largest !== undefined && shape.vcpus > largest
    ? `${machineType} has ${shape.vcpus} vCPUs, but ${gpus} x ${gpuType} goes with at most ${largest}; use a smaller machine or more GPUs`
    : null;
}
