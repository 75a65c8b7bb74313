/** Time and money of a sweep: said before it starts, and counted while it runs. */
import { formatDuration, formatUsd } from "../tuning/report/format";
import { CostMeter, costUsd, estimateS } from "../tuning/sweep-cost";
import { TargetError } from "../targets/target-error";
import { consent } from "./consent";
import type { PreparedTarget } from "./open-target";
import type { TuneOptions } from "./tune-options";

/**
 * Says what the sweep is expected to take, and asks where that is more than may be spent.
 * @returns what counts from now on; null where no machines are paid for by the hour
 * @throws TargetError when the answer is no
 */
export async function startSpending(
  { maxCostUsd, effort, yes, explore }: Pick<TuneOptions, "maxCostUsd" | "effort" | "yes" | "explore">,
  { price, variants }: Pick<PreparedTarget, "price" | "variants">,
  note: (text: string) => void,
): Promise<CostMeter | null> {
  if (price === null) return null;
  const count = variants.length + explore;
  const seconds = estimateS(effort, count);
  const usd = costUsd(price.usdPerHour, seconds);
  const estimate =
    `about ${formatDuration(seconds)} and ${formatUsd(usd)} for ${count} ${count === 1 ? "variant" : "variants"} ` +
    `(${formatUsd(price.usdPerHour)} an hour, list prices of ${price.asOf})`;
  note(`${estimate}; it ends at ${formatUsd(maxCostUsd)} (--max-cost)`);
  if (usd > maxCostUsd) {
    const question = `The sweep is expected to take ${estimate}, and would be cut short at --max-cost ${maxCostUsd}. Start it?`;
    if (!(await consent(question, yes))) throw new TargetError("the sweep was not started");
  }
  const { usdPerHour, asOf } = price;
  return new CostMeter({ usdPerHour, maxUsd: maxCostUsd, asOf }, Date.now);
}
