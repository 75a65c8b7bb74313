import type { GpuReading } from "../executor";

/** Triton polls its GPU metrics this often by default (--metrics-interval-ms), microseconds; here of model time. */
export const DEFAULT_GPU_POLL_US = 2_000_000;

/** Of one Tesla T4: 15,109 MiB as its driver reports them, and its power limit (NVIDIA's data sheet). */
const MEMORY_TOTAL_BYTES = 15_109 * 1024 * 1024;
const POWER_LIMIT_W = 70;
/** Assumptions without a published figure: idle power, memory of the CUDA context and of one instance. */
const IDLE_POWER_W = 27;
const CONTEXT_BYTES = 320 * 1024 * 1024;
const INSTANCE_BYTES = 400 * 1024 * 1024;

/** Instances that fit into the simulated GPU's memory. */
export const MAX_INSTANCES = Math.floor((MEMORY_TOTAL_BYTES - CONTEXT_BYTES) / INSTANCE_BYTES);

/** The metrics of the simulated GPU, refreshed at every full poll interval of model time, as Triton does. */
export class SimulatedGpu {
  private polledBusyUs = 0;
  private nextPollUs: number;
  private utilization = 0;

  /** @param pollUs poll interval, model microseconds */
  constructor(private readonly pollUs: number = DEFAULT_GPU_POLL_US) {
    this.nextPollUs = pollUs;
  }

  /** Next moment at which `poll` must be called, model microseconds. */
  get pollDueUs(): number {
    return this.nextPollUs;
  }

  /** @param busyUs busy time of the GPU up to `pollDueUs`, microseconds */
  poll(busyUs: number): void {
    this.utilization = Math.min(1, (busyUs - this.polledBusyUs) / this.pollUs);
    this.polledBusyUs = busyUs;
    this.nextPollUs += this.pollUs;
  }

  /** @param busyUs busy time up to now; `instances` loaded now */
  reading(nowUs: number, busyUs: number, instances: number): GpuReading {
    const dynamicW = POWER_LIMIT_W - IDLE_POWER_W;
    return {
      uuid: "GPU-00000000-0000-0000-0000-simulated-t4",
      utilization: this.utilization,
      memoryTotalBytes: MEMORY_TOTAL_BYTES,
      memoryUsedBytes: CONTEXT_BYTES + instances * INSTANCE_BYTES,
      powerW: IDLE_POWER_W + dynamicW * this.utilization,
      powerLimitW: POWER_LIMIT_W,
      energyJ: (IDLE_POWER_W * nowUs + dynamicW * busyUs) / 1e6,
    };
  }
}
