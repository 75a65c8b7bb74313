/** `npm run decide -- DIR --for N`: replicas, cost and autoscaling for a load, from the result of a sweep. */
import { join } from "node:path";
import { nodeUsdPerH } from "../pricing/cost";
import { loadPrices, PricesError } from "../pricing/prices";
import { planFor, type Demand } from "../tuning/decision/decide";
import { renderPlans } from "../tuning/decision/plan-table";
import { recommendationYaml } from "../tuning/decision/recommendation";
import { writeFileAtomic } from "../tuning/results/durable";
import { ResultsError } from "../tuning/results/results-error";
import { newestFinished, readResult, recommendationFileName } from "../tuning/results/results-folder";
import type { Result } from "../tuning/results/result-schema";
import { defaultMachine, parseDecideCommandLine, type DecideOptions, type Machine } from "./decide-options";
import { exitCodes, type ExitCode } from "./exit-codes";

const resultsRoot = "results";

function main(words: readonly string[]): ExitCode {
  const commandLine = parseDecideCommandLine(words);
  if (commandLine.kind === "help") {
    process.stdout.write(commandLine.text);
    return exitCodes.ok;
  }
  if (commandLine.kind === "invalid") {
    for (const error of commandLine.errors) process.stderr.write(`decide: ${error}\n`);
    return exitCodes.badInput;
  }
  try {
    return decide(commandLine.options);
  } catch (error) {
    if (!(error instanceof ResultsError || error instanceof PricesError)) throw error;
    process.stderr.write(`decide: ${error.message}\n`);
    return exitCodes.badInput;
  }
}

function decide(options: DecideOptions): ExitCode {
  const folder = options.folder ?? newestFinished(resultsRoot);
  if (folder === null)
    throw new ResultsError(
      "invalid",
      `there is no finished sweep in ${resultsRoot}/: run npm run tune, or name a folder`,
    );
  const result = readResult(folder);
  const price = priceFor(result, options.machine);
  const { loadPerS, spareReplicas, margin } = options;
  const demand: Demand = { loadPerS, spareReplicas, margin, usdPerReplicaHour: price.usdPerReplicaHour };
  const plans = planFor(result, demand);
  process.stdout.write(renderPlans(result, demand, plans));
  const [best] = plans;
  if (!best) return exitCodes.sloNeverHeld;
  const path = join(folder, recommendationFileName);
  writeFileAtomic(path, recommendationYaml(result, demand, best));
  process.stdout.write(`\nWritten: ${path}\n${price.words}\n`);
  return exitCodes.ok;
}

/** Of the machine that was named, or that the sweep was measured on, or of the stack's default. @throws PricesError */
function priceFor({ price }: Result, machine: Machine | null): { usdPerReplicaHour: number; words: string } {
  if (machine === null && price !== null)
    return { ...price, words: `Prices of ${price.asOf}, of the machine that the sweep measured.` };
  const prices = loadPrices();
  const { machineType, gpuType, region, spot } = machine ?? defaultMachine;
  const usdPerReplicaHour = nodeUsdPerH(prices, {
    machineType,
    accelerator: { type: gpuType, count: 1 },
    spot,
    region: region ?? prices.defaultRegion,
  });
  const node = `${machineType} with ${gpuType}${spot ? ", spot" : ""}, ${region ?? prices.defaultRegion}`;
  return { usdPerReplicaHour, words: `Prices of ${prices.asOf} (${node}): ${prices.note}` };
}

process.exitCode = main(process.argv.slice(2));
