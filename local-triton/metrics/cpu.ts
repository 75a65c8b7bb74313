import { cpus, freemem, totalmem } from "node:os";

/** What nv_cpu_* report. */
export interface CpuReading {
  /** Of the whole machine since the last reading, 0..1. */
  readonly utilization: number;
  readonly memoryTotalBytes: number;
  readonly memoryUsedBytes: number;
}

/** Reads the machine's CPU use between scrapes. */
export class CpuMeter {
  private last = cpuTimes();

  read(): CpuReading {
    const now = cpuTimes();
    const total = now.total - this.last.total;
    const utilization = total > 0 ? 1 - (now.idle - this.last.idle) / total : 0;
    this.last = now;
    return { utilization, memoryTotalBytes: totalmem(), memoryUsedBytes: totalmem() - freemem() };
  }
}

function cpuTimes(): { idle: number; total: number } {
  let idle = 0;
  let total = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    total += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, total };
}
