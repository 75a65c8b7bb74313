import { describe, expect, it, vi } from "vitest";
import { KserveError } from "../../kserve/client";
import { parsePrometheusText, sumOf } from "../../tuning/prometheus-text";
import recorded from "../local-triton/fixtures/http-answers.json";
import { inferSmall, inferTensor, sleep, testConfig, writeModel } from "../local-triton/support";
import { subjects } from "./harness/subjects";

/** The whole configuration as an override, with some fields changed. */
function override(change: object = {}): string {
  return JSON.stringify({ ...testConfig(), ...change });
}

const OVERRIDES: Readonly<Record<string, string>> = {
  "load: preferred 32 > max 8": override({
    max_batch_size: 8,
    dynamic_batching: { preferred_batch_size: [32] },
  }),
  "load: name mismatch": override({ name: "other" }),
  "load: not JSON": "{max_batch_size",
  "load: unknown field": override({ max_batch_sice: 8 }),
  "load: negative max_batch_size": override({ max_batch_size: -1 }),
  "load: count 0": override({ instance_group: [{ count: 0 }] }),
  "load: dynamic batching with max_batch_size 0": override({
    max_batch_size: 0,
    dynamic_batching: { preferred_batch_size: [64] },
  }),
};

async function failure(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "OK",
    (error: unknown) => {
      if (!(error instanceof KserveError)) throw error;
      return `${error.status}: ${error.details}`;
    },
  );
}

describe.each(subjects)("repository API of %s", (_name, start) => {
  it("keeps an override when loaded again without one; unload and load return to the file", async () => {
    const { client, repository } = await start([{}]);
    const batchSize = async (): Promise<number> => (await client.modelConfig("sim")).max_batch_size;
    expect(await batchSize()).toBe(64);
    await client.repositoryLoad("sim", override({ max_batch_size: 16 }));
    expect(await batchSize()).toBe(16);
    await client.repositoryLoad("sim");
    expect(await batchSize()).toBe(16);
    await client.repositoryUnload("sim");
    await client.repositoryLoad("sim");
    expect(await batchSize()).toBe(64);
    writeModel(repository, { config: { max_batch_size: 8 } });
    await client.repositoryLoad("sim");
    expect(await batchSize()).toBe(8);
  });

  it("replaces the configuration by a partial override", async () => {
    const { client } = await start([
      { config: { dynamic_batching: { max_queue_delay_microseconds: 1000 } } },
    ]);
    // Triton cannot complete a configuration without the model's tensors; the stand-in backend offers none.
    const { input, output, parameters, backend } = testConfig();
    await client.repositoryLoad(
      "sim",
      JSON.stringify({ max_batch_size: 32, backend, input, output, parameters }),
    );
    const config = await client.modelConfig("sim");
    expect(config.max_batch_size).toBe(32);
    expect(config.dynamic_batching ?? null).toBeNull();
  });

  it("restarts the statistics at a reload, not the counters", async () => {
    const { client, metrics } = await start([{}]);
    const successes = async () =>
      sumOf(parsePrometheusText(await metrics()), "nv_inference_request_success", { model: "sim" });
    for (let i = 0; i < 3; i++) await inferSmall(client, i);
    await client.repositoryLoad("sim", override({ max_batch_size: 16 }));
    expect((await client.modelStatistics("sim"))[0]).toMatchObject({ inference_count: 0, batch_stats: [] });
    expect(await successes()).toBe(3);
    await inferSmall(client);
    expect((await client.modelStatistics("sim"))[0]!.inference_count).toBe(1);
    expect(await successes()).toBe(4);
  });

  it("answers no request with an error while the model is loaded anew", async () => {
    const { client } = await start([{ gpuMsPerBatch: 2 }]);
    let reloading = true;
    let answered = 0;
    const ask = async (): Promise<void> => {
      while (reloading) {
        await inferSmall(client, answered);
        answered++;
      }
    };
    const asking = Promise.all([ask(), ask(), ask(), ask()]);
    for (const count of [2, 3, 1]) {
      for (const max_batch_size of [32, 16]) {
        await client.repositoryLoad("sim", override({ max_batch_size, instance_group: [{ count }] }));
        await sleep(20);
      }
    }
    reloading = false;
    await asking;
    expect(answered).toBeGreaterThan(10);
  });

  it("answers tensors that are inside when a model is unloaded but not classes, then knows no version of it", async () => {
    const { client, grpcAddress } = await start([{ gpuMsPerBatch: 300 }]);
    const tensor = inferTensor(grpcAddress);
    const classes = failure(inferSmall(client));
    await sleep(150);
    await client.repositoryUnload("sim");
    expect(await client.modelReady("sim")).toBe(false);
    expect(await client.repositoryIndex()).toMatchObject([{ name: "sim", state: "UNLOADING" }]);
    expect(await failure(inferSmall(client))).toBe(
      "5: Request for unknown model: 'sim' has no available versions",
    );
    expect((await tensor).code).toBe("OK");
    expect(await classes).toBe("14: Request for unknown model: 'sim' version 1 is not at ready state");
    await vi.waitFor(async () => {
      expect(await client.repositoryIndex()).toMatchObject([
        { name: "sim", state: "UNAVAILABLE", reason: "unloaded" },
      ]);
    });
    expect(await client.serverReady()).toBe(true);
  });

  it("answers bad loads as recorded and goes on serving", async () => {
    const { client } = await start([{}]);
    for (const answer of recorded.answers) {
      const config = OVERRIDES[answer.case];
      if (config === undefined) continue;
      const message = answer.grpc === "OK" ? "OK" : `13: ${answer.message}`;
      expect(await failure(client.repositoryLoad("sim", config)), answer.case).toBe(message);
      await inferSmall(client);
    }
    const unknown = recorded.answers.find((answer) => answer.case === "load: unknown model")!;
    expect(await failure(client.repositoryLoad("nope"))).toBe(`13: ${unknown.message}`);
    expect(await failure(client.repositoryUnload("nope"))).toBe("OK");
  });

  it("says which version cannot be loaded, and lists it with the reason", async () => {
    const { client, repository } = await start([{}]);
    // Triton has one GPU here, and so has the simulated T4.
    writeModel(repository, {
      name: "elsewhere",
      config: { instance_group: [{ kind: "KIND_GPU", gpus: [3] }] },
    });
    expect(await failure(client.repositoryLoad("elsewhere"))).not.toBe("OK");
    expect(await client.modelReady("elsewhere")).toBe(false);
    await inferSmall(client);
  });

  it("refuses load and unload unless models are controlled explicitly", async () => {
    const { client } = await start([{}, { name: "other" }], { modelControlMode: "none", loadModels: [] });
    const loaded = await client.repositoryIndex({ readyOnly: true });
    expect(loaded.map((model) => model.name).sort()).toEqual(["other", "sim"]);
    const refused = "14: explicit model load / unload is not allowed if polling is enabled";
    expect(await failure(client.repositoryLoad("sim"))).toBe(refused);
    expect(await failure(client.repositoryUnload("sim"))).toBe(refused);
  });
});
