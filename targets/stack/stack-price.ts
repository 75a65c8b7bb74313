/** What a stack costs while it is swept, from the machines in its outputs and the price table. */
import { nodeUsdPerH, stackCost } from "../../pricing/cost";
import type { Prices } from "../../pricing/prices";
import type { StackOutputs } from "../../stack/outputs";

export interface StackPrice {
  /** All machines of the stack while servers and load workers run, US dollars an hour. */
  readonly usdPerHour: number;
  /** One server with its share of a node, US dollars an hour. */
  readonly usdPerReplicaHour: number;
  /** Month of the price table. */
  readonly asOf: string;
}

/** @throws PricesError for a machine, accelerator, disk or region that the table does not have */
export function stackPrice({ sweepSize }: StackOutputs, prices: Prices): StackPrice {
  const servers = sweepSize.pools.find(({ name }) => name === "gpu");
  if (servers === undefined) throw new Error("the stack's outputs name no pool of GPU nodes");
  const { node } = servers;
  return {
    usdPerHour: stackCost(prices, sweepSize).reduce((sum, { usdPerH }) => sum + usdPerH, 0),
    usdPerReplicaHour:
      nodeUsdPerH(prices, { region: sweepSize.region, ...node }) / (node.accelerator?.count ?? 1),
    asOf: prices.asOf,
  };
}
