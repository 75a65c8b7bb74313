/**
 * A sweep in virtual time as a process that can have an accident. Arguments: results folder, seed, accident as JSON or "null".
 * Prints how many file operations it did, or the error of the results folder.
 */
import { catalogue, findVariant } from "../../../model-repo/catalogue";
import { serviceLawFor } from "../../../serving-model/t4";
import { ResultsError } from "../../../tuning/results/results-error";
import { ResultsFolder } from "../../../tuning/results/results-folder";
import { SimulatedRunner } from "../../../tuning/search/simulated-runner";
import type { OpenTarget } from "../../../tuning/target";
import { tune } from "../../../tuning/tune";
import { prepare, type Accident } from "./accidents";

const [, , folder = "", seed = "1", accident = "null"] = process.argv;
const variants = [findVariant("original")];
/** In slow time the search is short. */
const dilation = 12;

/** A server that exists in virtual time only. */
const target: OpenTarget = {
  kind: "local",
  description: "virtual time",
  simulated: true,
  serverName: "virtual",
  serverVersion: "1",
  identity: "virtual",
  gpu: null,
  control: {
    serve: async ({ name }) => name,
    batchSizes: async () => null,
    restore: async () => undefined,
  },
  load: { run: () => Promise.reject(new Error("there is no load generator")), close: async () => undefined },
  facts: { wireCeilingPerS: null, clientCeilingPerS: null },
  workers: 1,
  notes: [],
  endpoints: () => ({ grpc: ["virtual"], metrics: [] }),
  timeDilation: () => dilation,
  plannedDilation: () => dilation,
  gpuGaugeLagMs: 0,
  recover: async () => undefined,
  lawOf: serviceLawFor,
  close: async () => undefined,
};

async function main(): Promise<void> {
  const simulated = new SimulatedRunner({
    serverFor: (variant) => ({ ...variant, dynamicBatching: true, law: serviceLawFor(variant) }),
    overheadMs: 0.5,
    metricNoise: 0.01,
  });
  const operations = prepare(JSON.parse(accident) as Accident | null);
  const opened = ResultsFolder.open(folder, true);
  try {
    await tune(
      target,
      opened,
      {
        variants,
        slo: { quantile: 0.95, boundMs: 100 },
        goalRatePerS: null,
        load: "poisson",
        effort: "quick",
        seed: Number(seed),
        imageFolder: process.env["IMAGES"] ?? "",
        transport: "lean",
        project: { name: "test", version: "1" },
        options: { known: catalogue.length },
        price: null,
      },
      {
        onEvent: () => undefined,
        signal: new AbortController().signal,
        runner: {
          run: (spec) => simulated.run(spec),
          runOn: (_endpoints, spec) => simulated.run(spec),
          reset: () => undefined,
        },
      },
    );
  } finally {
    opened.close();
  }
  process.stdout.write(String(operations()));
}

main().catch((error: unknown) => {
  if (!(error instanceof ResultsError)) throw error;
  process.stdout.write(error.message);
  process.exitCode = 2;
});
