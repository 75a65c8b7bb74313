import type { NodeShape, StackSize } from "../pricing/cost";
import type { StackConfig } from "./derived-config";

/** What a stack is doing, and so which machines run. */
export type StackPhase = "asleep" | "serving" | "sweeping" | "converting";

/** Size of the variants' files in the bucket, GiB each: a ResNet-50 SavedModel with its engines. */
const gibPerVariant = 0.3;

/** Boot disks of the node pools, GiB. */
const nodeDisk = { type: "pd-balanced", sizeGib: 50 };
const gpuDisk = { type: "pd-balanced", sizeGib: 100 };

/**
 * Machines, disk and bucket that a stack pays for in a phase; the price table turns them into money (pricing/cost.ts).
 * Traffic is left out, except that nothing crosses a zone: workers run in the zone of the servers.
 */
export function stackSize(config: StackConfig, phase: StackPhase): StackSize {
  const { region, gpuType } = config;
  const pool = (name: string, nodes: number, node: Omit<NodeShape, "region">) => ({ name, nodes, node });
  const serving = phase === "serving" || phase === "sweeping";
  const servers = serving ? Math.ceil(config.replicas / config.gpusPerNode) : 0;
  const pools = [
    pool("system", 1, {
      machineType: config.systemMachineType,
      // The data disks of Prometheus and the load controller are attached to the one system node, so they are counted with it.
      disk: {
        ...nodeDisk,
        sizeGib:
          nodeDisk.sizeGib + (config.monitoring ? config.prometheusDiskSizeGi : 0) + config.loadHistoryDiskGi,
      },
    }),
    pool("gpu", servers, {
      machineType: config.gpuMachineType,
      accelerator: { type: gpuType, count: config.gpusPerNode },
      disk: gpuDisk,
      spot: config.gpuSpot,
    }),
    pool("load", phase === "sweeping" && config.loadGenerator ? config.load.maxNodes : 0, {
      machineType: config.loadMachineType,
      disk: nodeDisk,
      spot: config.loadSpot,
    }),
    pool("converter", phase === "converting" ? 1 : 0, {
      machineType: config.conversionMachineType,
      accelerator: { type: gpuType, count: 1 },
      disk: { type: "pd-balanced", sizeGib: config.conversionDiskGb },
      spot: config.conversionSpot,
    }),
  ];
  return {
    region,
    pools: pools.filter(({ nodes }) => nodes > 0),
    clusters: config.existingCluster === "" ? 1 : 0,
    bucketGib: gibPerVariant * config.variants.repository.length,
    nat:
      config.existingNetwork === "" && config.existingCluster === ""
        ? { addresses: 1, gibPerH: 0 }
        : undefined,
  };
}
