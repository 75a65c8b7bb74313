/** Load workers on this machine that wait awake for planned sends: whether it has the cores for that, and what a result says of it. */
import { TargetError } from "./target-error";

export interface BusyWaiting {
  /** Milliseconds; 0: the workers sleep until a send is due. */
  readonly busyWaitMs: number;
  readonly workers: number;
  /** Cores that this process may use. */
  readonly cores: number;
  /** The server that is loaded takes CPU from the same cores. */
  readonly isServerHere: boolean;
}

/**
 * What a result says of it; empty when the workers sleep.
 * @throws TargetError with fewer cores than workers: those that wait awake keep the others from sending
 */
export function busyWaitNotes({ busyWaitMs, workers, cores, isServerHere }: BusyWaiting): string[] {
  if (busyWaitMs === 0) return [];
  const have = `${cores} ${cores === 1 ? "core" : "cores"}`;
  if (workers > cores)
    throw new TargetError(
      `--busy-wait-ms keeps a core of every load worker awake, but there are ${workers} workers on ${have}: ` +
        `ask for ${cores} or fewer with --workers, or leave it out`,
    );
  const shared =
    isServerHere && workers === cores
      ? `; all ${have} of this machine, so that the server has to share them: fewer --workers, or none of it, may be better`
      : "";
  return [
    `the load workers wait awake ${busyWaitMs} ms for each planned send (--busy-wait-ms): a core each (${workers} of ${cores})${shared}`,
  ];
}
