/** How a result says that load workers waited awake for planned sends. Pure. */
import type { GeneratorHealth } from "./load-spec";

/** To be put behind the client's figures; nothing when the workers slept. */
export function busyWaitWords({
  busyWaitMs = 0,
  busyWaitShare = 0,
}: Pick<GeneratorHealth, "busyWaitMs" | "busyWaitShare">): string {
  if (busyWaitMs === 0) return "";
  return `, waits awake ${busyWaitMs} ms for each send (${(100 * busyWaitShare).toFixed(0)} % of a core apart)`;
}
