/**
 * Cores of a bench: the server has the first one that this process may use, the clients have the others. Where the scheduler is free to
 * put client and server on one core or on two, it does now this, now that, and the same request costs 0.16 or 0.31 ms.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

export interface Cores {
  readonly server: readonly number[];
  readonly clients: readonly number[];
}

/** Null: there is one core only, or no `taskset` (Linux: util-linux). */
export function divideCores(): Cores | null {
  if (spawnSync("taskset", ["--version"]).status !== 0) return null;
  const [, list] = /Cpus_allowed_list:\s+(\S+)/.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const [first, ...others] = (list ?? "").split(",").flatMap((range) => {
    const [from, to] = range.split("-").map(Number);
    return Array.from({ length: (to ?? from!) - from! + 1 }, (_, i) => from! + i);
  });
  return first === undefined || others.length === 0 ? null : { server: [first], clients: others };
}

/** The command on these cores only; undefined: wherever the scheduler puts it. */
export function onCores(cores: readonly number[] | undefined, command: readonly string[]): string[] {
  return cores === undefined ? [...command] : ["taskset", "-c", cores.join(","), ...command];
}

/** CPU time of another process so far, user and system, milliseconds; steps of 10 ms (proc(5), USER_HZ). NaN where there is no /proc. */
export function cpuOfMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return NaN;
  }
}
