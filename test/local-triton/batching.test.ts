import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { FinishedBatch, RunnerRequest } from "../../local-triton/executor";
import { ModelClock } from "../../local-triton/model-clock";
import { SimulatedT4 } from "../../local-triton/simulated-t4/executor";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import type { ModelConfig } from "../../model-repo/config-types";
import recorded from "./fixtures/batching.json";
import { tensor, testConfig } from "./support";

/** A batch took this long on the recorded server, whatever its size, milliseconds. */
const BATCH_MS = 300;

type Scenario = (typeof recorded.scenarios)[number];

/** "20 x batch 1" or a list of batch sizes. */
function sizesOf(requests: string | readonly number[]): readonly number[] {
  if (typeof requests !== "string") return requests;
  const match = /^(\d+) x batch (\d+)$/.exec(requests);
  if (match === null) throw new Error(`cannot read '${requests}'`);
  return new Array<number>(Number(match[1])).fill(Number(match[2]));
}

/** The recorded configuration on the simulated GPU. */
function configOf({ config }: Scenario): ModelConfig {
  const { dynamic_batching, instance_group: groups } = config;
  return testConfig({
    gpuMsPerBatch: BATCH_MS,
    config: {
      max_batch_size: config.max_batch_size,
      ...(groups === undefined ? {} : { instance_group: groups.map(({ count }) => ({ count })) }),
      ...(dynamic_batching === undefined ? {} : { dynamic_batching }),
    },
  });
}

/** Plays a scenario; returns executions by batch size. */
async function play(scenario: Scenario): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  const node = new SimulatedT4(new ModelClock(1), { lateness: () => undefined }, 0);
  const loading = node.load(
    { config: withTritonDefaults(configOf(scenario)), previous: null, versionFolder: "" },
    {
      finished: ({ images }: FinishedBatch<RunnerRequest>) => {
        sizes[images] = (sizes[images] ?? 0) + 1;
      },
      rejected: () => expect.fail("nothing is rejected"),
      failed: () => expect.fail("nothing fails"),
    },
  );
  await vi.advanceTimersByTimeAsync(1);
  const runner = await loading;
  const submit = (images: number): void => runner.submit({ images, timeoutUs: 0 }, tensor(48 * images));
  if (scenario.blocker !== null) {
    sizesOf(scenario.blocker).forEach(submit);
    await vi.advanceTimersByTimeAsync(100);
  }
  sizesOf(scenario.requests).forEach(submit);
  await vi.advanceTimersByTimeAsync(20 * BATCH_MS);
  return sizes;
}

/** Scenarios whose batches depended on a race in the recorded server: more requests waiting than the largest preferred size. */
const RACES = /^(C|D) preferred .* (8|11|13|16|20)$|^E /;

/**
 * A trickle behind a busy instance: Triton closed the next batch when its oldest request had waited the delay; here it grows until the
 * instance is idle.
 */
const DIFFERENT = /^(L|M) delay100 trickle/;

describe("dynamic batching", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const steady = recorded.scenarios.filter(
    ({ scenario }) => !RACES.test(scenario) && !DIFFERENT.test(scenario),
  );

  it.each(steady.map((scenario) => [scenario.scenario, scenario.blocker ?? "none", scenario] as const))(
    "%s, blocker: %s",
    async (_name, _blocker, scenario) => {
      expect(scenario.batches).toContainEqual(await play(scenario));
    },
  );

  it("is compared in most of the recorded scenarios", () => {
    expect(steady.length).toBeGreaterThan(25);
  });
});
