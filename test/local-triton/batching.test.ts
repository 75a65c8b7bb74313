import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../model-repo/config-types";
import recorded from "./fixtures/batching.json";
import { inferSmall, sleep, startServer } from "./support";

/** All scenarios run at once in this process: slower than real time, so that requests sent at once also arrive at once. */
const DILATION = 2;
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

/** Plays a scenario; returns executions by batch size. */
async function play(scenario: Scenario): Promise<Record<string, number>> {
  const gpu: ModelConfig = {
    instance_group: scenario.config.instance_group?.map(({ count }) => ({ count, kind: "KIND_GPU" })),
  };
  const { client } = await startServer(
    [{ gpuMsPerBatch: BATCH_MS, config: { ...(scenario.config as ModelConfig), ...gpu } }],
    { timeDilation: DILATION },
  );
  const pending: Promise<unknown>[] = [];
  if (scenario.blocker !== null) {
    for (const images of sizesOf(scenario.blocker)) pending.push(inferSmall(client, 0, images));
    await sleep(100 * DILATION);
  }
  for (const [index, images] of sizesOf(scenario.requests).entries()) {
    pending.push(inferSmall(client, index, images));
  }
  await Promise.all(pending);
  const [stats] = await client.modelStatistics("sim");
  return Object.fromEntries(
    stats!.batch_stats.map((batch) => [String(batch.batch_size), batch.compute_infer!.count]),
  );
}

/** Scenarios whose batches depended on a race in the recorded server: more requests waiting than the largest preferred size. */
const RACES = /^(C|D) preferred .* (8|11|13|16|20)$|^E /;

describe("dynamic batching over gRPC", () => {
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
