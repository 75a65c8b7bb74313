import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { KserveError } from "../../kserve/client";
import { decodeClassifications } from "../../kserve/wire";
import recorded from "./fixtures/http-answers.json";
import {
  eventually,
  inferSmall,
  inferTensor,
  makeRepository,
  sleep,
  startServer,
  testConfig,
  writeModel,
} from "./support";

/** The whole configuration as an override, with some fields changed. */
function override(change: object = {}): string {
  return JSON.stringify({ ...testConfig(), ...change });
}

async function failure(promise: Promise<unknown>): Promise<{ status: number; details: string }> {
  const error: unknown = await promise.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof KserveError)) throw error;
  return { status: error.status, details: error.details };
}

describe("repository API", () => {
  it("lists models never loaded by name only, and loaded ones as READY", async () => {
    const { client, http } = await startServer([{}, { name: "other" }], { loadModels: ["sim"] });
    expect(await client.repositoryIndex()).toEqual([
      { name: "other", version: "", state: "", reason: "" },
      { name: "sim", version: "1", state: "READY", reason: "" },
    ]);
    const listed = await http("/v2/repository/index", { method: "POST" });
    expect(JSON.parse(listed.body)).toEqual([
      { name: "other" },
      { name: "sim", version: "1", state: "READY" },
    ]);
    const ready = await http("/v2/repository/index", { method: "POST", body: '{"ready":true}' });
    expect(JSON.parse(ready.body)).toEqual([{ name: "sim", version: "1", state: "READY" }]);
  });

  it("keeps an override when loaded again without one; unload and load return to the file", async () => {
    const { client } = await startServer([{}]);
    const batchSize = async (): Promise<number> => (await client.modelConfig("sim")).max_batch_size;
    expect(await batchSize()).toBe(64);
    await client.repositoryLoad("sim", override({ max_batch_size: 16 }));
    expect(await batchSize()).toBe(16);
    await client.repositoryLoad("sim");
    expect(await batchSize()).toBe(16);
    await client.repositoryUnload("sim");
    await client.repositoryLoad("sim");
    expect(await batchSize()).toBe(64);
  });

  it("replaces the configuration by a partial override: what is left out is lost, labels too", async () => {
    const batching = { dynamic_batching: { max_queue_delay_microseconds: 1000 } };
    const { client } = await startServer([{ config: batching }]);
    expect((await client.modelConfig("sim")).dynamic_batching).not.toBeNull();
    await client.repositoryLoad("sim", '{"max_batch_size":32}');
    const config = await client.modelConfig("sim");
    expect(config.max_batch_size).toBe(32);
    expect(config.dynamic_batching ?? null).toBeNull();
    expect(config.input[0]).toMatchObject({ name: "input", dims: [4, 4, 3], format: "FORMAT_NONE" });
    const [top] = decodeClassifications((await inferSmall(client)).raw[0]!);
    expect(top!.label).toBeNull();
  });

  it("loads the file's configuration when it has changed", async () => {
    const { client, repository } = await startServer([{}]);
    writeModel(repository, { config: { max_batch_size: 8 } });
    await client.repositoryLoad("sim");
    expect((await client.modelConfig("sim")).max_batch_size).toBe(8);
  });

  it("serves the newest version and answers for it alone", async () => {
    const repository = makeRepository([{}]);
    mkdirSync(join(repository, "sim", "3"));
    mkdirSync(join(repository, "sim", "not-a-version"));
    const { client } = await startServer([{}], { modelRepository: repository });
    expect((await client.modelMetadata("sim")).versions).toEqual(["3"]);
    expect(await client.modelReady("sim", "3")).toBe(true);
    expect(await client.modelReady("sim", "1")).toBe(false);
    expect(await client.modelReady("sim")).toBe(true);
  });

  it("answers no request with an error while the model is loaded anew", async () => {
    const { client } = await startServer([{ gpuMsPerBatch: 2 }], { loadTimeMs: 30 });
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
      await client.repositoryLoad("sim", override({ max_batch_size: 32, instance_group: [{ count }] }));
      await client.repositoryLoad("sim", override({ max_batch_size: 16, instance_group: [{ count }] }));
    }
    reloading = false;
    await asking;
    expect(answered).toBeGreaterThan(10);
  });

  it("restarts the statistics at a reload, not the counters", async () => {
    const { client, metrics } = await startServer([{}]);
    for (let i = 0; i < 3; i++) await inferSmall(client, i);
    await client.repositoryLoad("sim", override({ max_batch_size: 16 }));
    expect((await client.modelStatistics("sim"))[0]).toMatchObject({ inference_count: 0, batch_stats: [] });
    expect(await metrics()).toContain('nv_inference_request_success{model="sim",version="1"} 3\n');
    await inferSmall(client);
    expect((await client.modelStatistics("sim"))[0]!.inference_count).toBe(1);
    expect(await metrics()).toContain('nv_inference_request_success{model="sim",version="1"} 4\n');
  });

  it("answers tensors that are inside when a model is unloaded but not classes, then knows no version of it", async () => {
    const { client, grpcAddress } = await startServer([{ gpuMsPerBatch: 200 }]);
    const inside = inferTensor(grpcAddress);
    const classes = failure(inferSmall(client));
    await sleep(100);
    await client.repositoryUnload("sim");
    expect(await client.modelReady("sim")).toBe(false);
    expect(await client.repositoryIndex()).toMatchObject([{ name: "sim", state: "UNLOADING" }]);
    const none = { status: 5, details: "Request for unknown model: 'sim' has no available versions" };
    expect(await failure(inferSmall(client))).toEqual(none);
    expect((await inside).code).toBe("OK");
    expect(await classes).toEqual({
      status: 14,
      details: "Request for unknown model: 'sim' version 1 is not at ready state",
    });
    await eventually(async () => {
      expect(await client.repositoryIndex()).toMatchObject([
        { name: "sim", state: "UNAVAILABLE", reason: "unloaded" },
      ]);
    });
    expect(await client.serverReady()).toBe(true);
  });

  it("takes the model's load time, in model time", async () => {
    const { client } = await startServer([{}], { loadModels: [], loadTimeMs: 200, timeDilation: 2 });
    const from = performance.now();
    const loading = client.repositoryLoad("sim");
    await eventually(async () => {
      expect(await client.repositoryIndex()).toMatchObject([{ state: "LOADING" }]);
    });
    expect(await client.serverReady()).toBe(false);
    await loading;
    expect(performance.now() - from).toBeGreaterThanOrEqual(399);
    expect(await client.serverReady()).toBe(true);
  });

  it("refuses load and unload unless models are controlled explicitly, and then loads all at the start", async () => {
    const { client } = await startServer([{}, { name: "other" }], { modelControlMode: "none" });
    expect((await client.repositoryIndex({ readyOnly: true })).map((model) => model.name)).toEqual([
      "other",
      "sim",
    ]);
    const refused = {
      status: 14,
      details: "explicit model load / unload is not allowed if polling is enabled",
    };
    expect(await failure(client.repositoryLoad("sim"))).toEqual(refused);
    expect(await failure(client.repositoryUnload("sim"))).toEqual(refused);
  });

  it("ends the start with the reason when a model cannot be loaded", async () => {
    const repository = makeRepository([{}]);
    rmSync(join(repository, "sim", "labels.txt"));
    const log: string[] = [];
    const start = startServer([{}], { modelRepository: repository, log: (line) => log.push(line) });
    await expect(start).rejects.toThrow(/failed to load 'sim'/);
    expect(log.join()).toMatch(/labels of sim cannot be read/);
  });
});

describe("bad loads", () => {
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

  it("answers as recorded, over gRPC and HTTP, and goes on serving", async () => {
    const { client, http, log } = await startServer([{}]);
    for (const answer of recorded.answers) {
      if (!answer.case.startsWith("load:") || answer.grpc === undefined) continue;
      const isUnknown = answer.case === "load: unknown model";
      const model = isUnknown ? "nope" : "sim";
      const config = OVERRIDES[answer.case];
      expect(isUnknown || config !== undefined, answer.case).toBe(true);
      const logged = log.length;
      const load = client.repositoryLoad(model, config);
      if (answer.grpc === "OK") {
        await load;
      } else {
        expect((await failure(load)).details, answer.case).toBe(answer.message);
        expect(log.length, `${answer.case}: the reason is logged`).toBeGreaterThan(logged);
      }
      const body = JSON.stringify(config === undefined ? {} : { parameters: { config } });
      const overHttp = await http(`/v2/repository/models/${model}/load`, { method: "POST", body });
      expect({ status: overHttp.status, body: overHttp.body }, answer.case).toEqual({
        status: answer.http,
        body: answer.httpBody,
      });
      await inferSmall(client);
    }
  });

  it("names what a model lacks to be simulated; the model that is served stays", async () => {
    const { client } = await startServer([{}]);
    const reason = async (change: object): Promise<string> =>
      (await failure(client.repositoryLoad("sim", override(change)))).details;
    const parameters = testConfig().parameters;
    const wrong = { ...parameters, simulated_precision: { string_value: "fp8" } };
    expect(await reason({ parameters: wrong })).toBe(
      "load failed for model 'sim': version 1 is at READY state: Invalid argument: parameter simulated_precision is 'fp8', " +
        "not original, fp32, fp16 or int8;\n",
    );
    expect(await reason({ instance_group: [{ kind: "KIND_CPU" }] })).toMatch(/use KIND_GPU/);
    expect(await reason({ instance_group: [{ kind: "KIND_GPU", gpus: [1] }] })).toMatch(
      /invalid or unsupported gpu id 1\. GPUs of this server are: 0/,
    );
    expect(await reason({ instance_group: [{ count: 200 }] })).toMatch(/out of memory/);
    expect(await reason({ sequence_batching: {} })).toMatch(/does not support sequence_batching/);
    await inferSmall(client);
  });

  it("says how to name a model whose precision is unknown", async () => {
    const { client, repository } = await startServer([{}]);
    mkdirSync(join(repository, "resnet", "1"), { recursive: true });
    writeFileSync(
      join(repository, "resnet", "config.pbtxt"),
      `platform: "tensorflow_savedmodel" max_batch_size: 8
       input { name: "input" data_type: TYPE_FP32 dims: [ 224, 224, 3 ] }
       output { name: "probabilities" data_type: TYPE_FP32 dims: [ 1000 ] }`,
    );
    const { status, details } = await failure(client.repositoryLoad("resnet"));
    expect(status).toBe(3);
    expect(details).toMatch(
      /^load failed for model 'resnet': version 1 is at UNAVAILABLE state: Invalid argument: the precision of 'resnet'/,
    );
    expect(await client.serverReady()).toBe(false);
    expect(await client.repositoryIndex()).toMatchObject([{ name: "resnet", state: "UNAVAILABLE" }, {}]);
    const { details: infer } = await failure(inferSmall(client, 0, 1, "resnet"));
    expect(infer).toBe("Request for unknown model: 'resnet' has no available versions");
  });
});
