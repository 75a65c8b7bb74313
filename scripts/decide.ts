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
import { parseDecideCommandLine, type DecideOptions } from "./decide-options";
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
  const prices = loadPrices();
  const demand: Demand = {
    loadPerS: options.loadPerS,
    spareReplicas: options.spareReplicas,
    margin: options.margin,
    usdPerReplicaHour: nodeUsdPerH(prices, {
      machineType: options.machineType,
      accelerator: { type: options.gpuType, count: 1 },
      spot: options.spot,
      region: options.region ?? prices.defaultRegion,
    }),
  };
  const plans = planFor(result, demand);
  process.stdout.write(renderPlans(result, demand, plans));
  const [best] = plans;
  if (!best) return exitCodes.sloNeverHeld;
  const path = join(folder, recommendationFileName);
  writeFileAtomic(path, recommendationYaml(result, demand, best));
  process.stdout.write(`\nWritten: ${path}\nPrices of ${prices.asOf}: ${prices.note}\n`);
  return exitCodes.ok;
}

process.exitCode = main(process.argv.slice(2));
