/** What a GKE node of a machine type offers to pods. */

/** Memory per vCPU of predefined machine types, GiB (cloud.google.com/compute/docs/general-purpose-machines). */
const memoryPerCpuGib: Record<string, number> = {
  "n1-standard": 3.75,
  "n1-highmem": 6.5,
  "n1-highcpu": 0.9,
  "n2-standard": 4,
  "n2-highcpu": 1,
  "n2d-standard": 4,
  "n4-standard": 4,
  "c2-standard": 4,
  "c3-standard": 4,
  "c3-highcpu": 2,
  "c4-standard": 3.75,
  "e2-standard": 4,
  "e2-highcpu": 1,
  "e2-highmem": 8,
  "g2-standard": 4,
};

export interface NodeResources {
  capacity: Record<string, string>;
  allocatable: Record<string, string>;
}

/** Sum of the shares of each slice of a total, e.g. 25 % of the first 4 GiB. The last slice has no end. */
function reserved(total: number, slices: readonly (readonly [size: number, share: number])[]): number {
  let left = total;
  let sum = 0;
  for (const [size, share] of slices) {
    const part = Math.min(left, size);
    sum += part * share;
    left -= part;
  }
  return sum;
}

/**
 * Capacity and allocatable as GKE computes them (cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes).
 * @throws Error for a machine family without an entry
 */
export function nodeResources(machineType: string, diskGb: number): NodeResources {
  const match = /^([a-z0-9]+-[a-z]+)-(\d+)$/.exec(machineType);
  const perCpu = memoryPerCpuGib[match?.[1] ?? ""];
  if (!match || perCpu === undefined)
    throw new Error(`Unknown machine type ${machineType}: add its family to machines.ts`);
  const cpus = Number(match[2]);
  const memoryGib = cpus * perCpu;
  const reservedCpus = reserved(cpus, [
    [1, 0.06],
    [1, 0.01],
    [2, 0.005],
    [Infinity, 0.0025],
  ]);
  const reservedGib = reserved(memoryGib, [
    [4, 0.25],
    [4, 0.2],
    [8, 0.1],
    [112, 0.06],
    [Infinity, 0.02],
  ]);
  const evictionGib = 100 / 1024;
  const diskGib = diskGb * (1e9 / 2 ** 30) * 0.94;
  const reservedDiskGib = 0.1 * diskGib + Math.min(0.5 * diskGib, 6 + 0.35 * diskGib, 100);
  const mebi = (gib: number): string => `${Math.floor(gib * 1024)}Mi`;
  return {
    capacity: { cpu: String(cpus), memory: mebi(memoryGib), "ephemeral-storage": mebi(diskGib), pods: "110" },
    allocatable: {
      cpu: `${Math.floor((cpus - reservedCpus) * 1000)}m`,
      memory: mebi(memoryGib - reservedGib - evictionGib),
      "ephemeral-storage": mebi(diskGib - reservedDiskGib),
      pods: "110",
    },
  };
}
