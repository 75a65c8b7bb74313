import { describe, expect, it } from "vitest";
import type { FinishedBatch, RunnerRequest } from "../../local-triton/executor";
import { ModelClock } from "../../local-triton/model-clock";
import { SimulatedT4 } from "../../local-triton/simulated-t4/executor";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import type { ModelConfig } from "../../model-repo/config-types";
import recorded from "./fixtures/batching.json";
import { sleep, tensor, testConfig } from "./support";

/** A batch took this long on the recorded server, whatever its size, milliseconds. */
const BATCH_MS = 300;
/** The scenarios are played this much faster. */
const SPEED = 3;

type Scenario = (typeof recorded.scenarios)[number];

/** "20 x batch 1" or a list of batch sizes. */
function sizesOf(requests: string | readonly number[]): readonly number[] {
  if (typeof requests !== "string") return requests;
  const match = /^(\d+) x batch (\d+)$/.exec(requests);
  if (match === null) throw new Error(`cannot read '${requests}'`);
  return new Array<number>(Number(match[1])).fill(Number(match[2]));
}

/** The recorded configuration on the simulated GPU, played faster. */
function configOf({ config }: Scenario): ModelConfig {
  const { dynamic_batching: batching, instance_group: groups } = config;
  return testConfig({
    gpuMsPerBatch: BATCH_MS / SPEED,
    config: {
      max_batch_size: config.max_batch_size,
      ...(groups === undefined ? {} : { instance_group: groups.map(({ count }) => ({ count })) }),
      ...(batching === undefined
        ? {}
        : {
            dynamic_batching: {
              ...batching,
              max_queue_delay_microseconds: (batching.max_queue_delay_microseconds ?? 0) / SPEED,
            },
          }),
    },
  });
}

/** Plays a scenario; returns executions by batch size. */
async function play(scenario: Scenario): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  const node = new SimulatedT4(new ModelClock(1), { lateness: () => undefined }, 0);
  const runner = await node.load(withTritonDefaults(configOf(scenario)), null, {
    finished: ({ images }: FinishedBatch<RunnerRequest>) => {
      sizes[images] = (sizes[images] ?? 0) + 1;
    },
    rejected: () => expect.fail("nothing is rejected"),
  });
  const submit = (images: number): void => runner.submit({ images, timeoutUs: 0 }, tensor(48 * images));
  if (scenario.blocker !== null) {
    sizesOf(scenario.blocker).forEach(submit);
    await sleep(100 / SPEED);
  }
  sizesOf(scenario.requests).forEach(submit);
  await runner.close();
  return sizes;
}

/** Scenarios whose batches depended on a race in the recorded server: more requests waiting than the largest preferred size. */
const RACES = /^(C|D) preferred .* (8|11|13|16|20)$|^E /;

describe("dynamic batching", () => {
  it("forms the batches that were recorded", async () => {
    const steady = recorded.scenarios.filter(
      (scenario) => !RACES.test(scenario.scenario) && scenario.gapS === 0,
    );
    expect(steady.length).toBeGreaterThan(25);
    const played = await Promise.all(
      steady.map(async (scenario) => ({ ...scenario, played: await play(scenario) })),
    );
    for (const { scenario, blocker, batches, played: sizes } of played) {
      expect(batches, `${scenario}, blocker ${blocker}`).toContainEqual(sizes);
    }
  });
});
