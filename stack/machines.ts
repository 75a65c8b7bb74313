/** What the stack needs to know of a machine type. */
export interface MachineShape {
  readonly family: string;
  readonly vcpus: number;
  readonly memoryGi: number;
  /** Highest egress to addresses inside the VPC, Gbit/s. */
  readonly egressGbps: number;
}

interface Family {
  readonly memoryGiPerVcpu: number;
  /** vCPUs to egress, Gbit/s; the sizes that exist. */
  readonly sizes: Readonly<Record<number, number>>;
}

/** Source: cloud.google.com/compute/docs/general-purpose-machines and accelerator-optimized-machines, seen 2026-11. */
const families: Readonly<Record<string, Family>> = {
  "n1-standard": {
    memoryGiPerVcpu: 3.75,
    sizes: { 1: 2, 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 64: 32, 96: 32 },
  },
  "n1-highmem": { memoryGiPerVcpu: 6.5, sizes: { 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 64: 32, 96: 32 } },
  "n2-standard": {
    memoryGiPerVcpu: 4,
    sizes: { 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 32, 80: 32 },
  },
  "n2d-standard": { memoryGiPerVcpu: 4, sizes: { 2: 10, 4: 10, 8: 16, 16: 32, 32: 32, 48: 32, 64: 32 } },
  "e2-standard": { memoryGiPerVcpu: 4, sizes: { 2: 4, 4: 8, 8: 16, 16: 16, 32: 16 } },
  "c2-standard": { memoryGiPerVcpu: 4, sizes: { 4: 10, 8: 16, 16: 32, 30: 32, 60: 32 } },
  "g2-standard": { memoryGiPerVcpu: 4, sizes: { 4: 10, 8: 16, 12: 16, 16: 32, 24: 32, 32: 32, 48: 50 } },
};

/** Machine families the table knows, for messages. */
export const machineFamilies: readonly string[] = Object.keys(families);

/** Shape of a predefined machine type, or undefined if the table does not have it. */
export function machineShape(machineType: string): MachineShape | undefined {
  const match = /^([a-z0-9]+-[a-z]+)-(\d+)$/.exec(machineType);
  const family = families[match?.[1] ?? ""];
  const vcpus = Number(match?.[2]);
  const egressGbps = family?.sizes[vcpus];
  if (match?.[1] === undefined || family === undefined || egressGbps === undefined) return undefined;
  return {
    family: match[1].split("-")[0] ?? "",
    vcpus,
    memoryGi: family.memoryGiPerVcpu * vcpus,
    egressGbps,
  };
}

/** An accelerator, the machines it fits, and what engines must be built on. */
export interface Accelerator {
  readonly machineFamilies: readonly string[];
  /** GPUs of a machine to its largest number of vCPUs. */
  readonly largestVcpus: Readonly<Record<number, number>>;
  readonly computeCapability: string;
}

/** Source: cloud.google.com/compute/docs/gpus, seen 2026-11. */
export const accelerators: Readonly<Record<string, Accelerator>> = {
  "nvidia-tesla-t4": {
    machineFamilies: ["n1"],
    largestVcpus: { 1: 48, 2: 48, 4: 96 },
    computeCapability: "7.5",
  },
  "nvidia-l4": { machineFamilies: ["g2"], largestVcpus: { 1: 32, 2: 24, 4: 48 }, computeCapability: "8.9" },
};

/**
 * CPU cores and GiB of memory that GKE leaves for pods (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes),
 * less what the DaemonSets of GKE and of the driver ask for.
 */
export function allocatable(shape: MachineShape): { readonly cpu: number; readonly memoryGi: number } {
  const tiers = (total: number, steps: readonly (readonly [number, number])[]): number => {
    let rest = total;
    let reserved = 0;
    for (const [size, share] of steps) {
      const part = Math.min(rest, size);
      reserved += part * share;
      rest -= part;
    }
    return reserved;
  };
  const all = Number.POSITIVE_INFINITY;
  const cpuReserved = tiers(shape.vcpus, [
    [1, 0.06],
    [1, 0.01],
    [2, 0.005],
    [all, 0.0025],
  ]);
  const memoryReserved = tiers(shape.memoryGi, [
    [4, 0.25],
    [4, 0.2],
    [8, 0.1],
    [112, 0.06],
    [all, 0.02],
  ]);
  const evictionGi = 0.1;
  const daemonSets = { cpu: 0.8, memoryGi: 1 };
  return {
    cpu: shape.vcpus - cpuReserved - daemonSets.cpu,
    memoryGi: shape.memoryGi - memoryReserved - evictionGi - daemonSets.memoryGi,
  };
}
