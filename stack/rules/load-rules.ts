import type { ConfigRule } from "../config-rules";
import { loadSize, machineRatePerS, workerCpu, workersPerMachine } from "../load-sizing";
import { machineFamilies, machineShape } from "../machines";

/** Rules of the load generator. */
export const loadRules: readonly ConfigRule[] = [
  {
    keys: ["loadMachineType"],
    problem: ({ loadMachineType }) => {
      const shape = machineShape(loadMachineType);
      if (shape === undefined)
        return `"${loadMachineType}" is not known; use a predefined type of ${machineFamilies.join(", ")}`;
      return workersPerMachine(shape) > 0
        ? null
        : `"${loadMachineType}" has no room for a worker, which gets ${workerCpu} whole cores beside one for the system; ` +
            `use a machine with ${workerCpu + 1} vCPUs or more`;
    },
  },
  {
    keys: ["loadWorkers", "loadMachineType", "peakRatePerS", "variant", "repositoryVariants"],
    problem: ({ loadWorkers, loadMachineType, peakRatePerS, bytesPerRequest }) => {
      const shape = machineShape(loadMachineType);
      if (shape === undefined || loadWorkers === 0) return null;
      const needed = loadSize(peakRatePerS, bytesPerRequest, shape).workers;
      return loadWorkers >= needed
        ? null
        : `${loadWorkers} cannot send ${peakRatePerS} requests/s of ${bytesPerRequest} bytes; use ${needed} or more, 0 to derive it, or lower peakRatePerS`;
    },
  },
  {
    keys: ["loadMaxNodes", "loadMachineType", "peakRatePerS", "loadWorkers"],
    problem: ({ loadMaxNodes, loadMachineType, peakRatePerS, bytesPerRequest, load }) => {
      const shape = machineShape(loadMachineType);
      if (shape === undefined || workersPerMachine(shape) === 0 || loadMaxNodes === 0) return null;
      const byEgress = Math.ceil(peakRatePerS / machineRatePerS(shape, bytesPerRequest));
      const byCores = Math.ceil(load.workers / workersPerMachine(shape));
      const needed = Math.max(byEgress, byCores);
      return loadMaxNodes >= needed
        ? null
        : `${loadMaxNodes} x ${loadMachineType} (${shape.egressGbps} Gbit/s, ${workersPerMachine(shape)} workers each) cannot send ` +
            `${peakRatePerS} requests/s of ${bytesPerRequest} bytes; use ${needed} or more, 0 to derive it, or a larger machine`;
    },
  },
  {
    keys: ["tuneMembers"],
    problem: ({ tuneMembers }) => {
      const bad = tuneMembers.filter(
        (member) => !/^(user|group|serviceAccount):[^@\s]+@[^@\s]+$/.test(member),
      );
      return bad.length > 0
        ? `${bad.join(", ")}: use user:E-MAIL, group:E-MAIL or serviceAccount:E-MAIL`
        : null;
    },
  },
];
