import { getEventListeners } from "node:events";
import { Server, ServerCredentials, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KserveClient, KserveError } from "../../kserve/client";
import {
  healthService,
  inferenceService,
  type HealthService,
  type InferenceService,
  type ServiceHandlers,
} from "../../kserve/load-protos";
import type { ModelInferRequest, RepositoryModelRequest } from "../../kserve/messages";
import { GrpcStatusCode, grpcStatusName } from "../../kserve/status";
import { decodeClassifications, encodeClassifications } from "../../kserve/wire";

const loads: RepositoryModelRequest[] = [];
let inferRequest: ModelInferRequest | undefined;
const handlers: ServiceHandlers<InferenceService> = {
  ServerLive: (_call, reply) => reply(null, { live: true }),
  ServerReady: (_call, reply) => reply(null, {}),
  ServerMetadata: (_call, reply) =>
    reply(null, { name: "triton", version: "2.51.0", extensions: ["classification"] }),
  ModelReady: (call, reply) => reply(null, { ready: call.request.name === "known" }),
  ModelMetadata: (call, reply) =>
    call.request.name === "known"
      ? reply(null, {
          name: "known",
          inputs: [{ name: "input", datatype: "FP32", shape: [-1, 224, 224, 3] }],
        })
      : reply({
          code: status.NOT_FOUND,
          details: `Request for unknown model: '${call.request.name}' is not found`,
        }),
  ModelConfig: (call, reply) =>
    reply(null, {
      config: { name: call.request.name, max_batch_size: 8, dynamic_batching: { preferred_batch_size: [8] } },
    }),
  ModelStatistics: (_call, reply) =>
    reply(null, {
      model_stats: [{ name: "known", inference_count: 2 ** 40, batch_stats: [{ batch_size: 8 }] }],
    }),
  ModelInfer: (call, reply) => {
    inferRequest = call.request;
    reply(null, {
      model_name: call.request.model_name,
      outputs: [{ name: "probabilities", datatype: "BYTES", shape: [1, 1] }],
      raw_output_contents: [encodeClassifications([{ score: 0.5, classIndex: 285, label: "Egyptian cat" }])],
    });
  },
  RepositoryIndex: (call, reply) =>
    reply(null, { models: call.request.ready ? [] : [{ name: "known", state: "READY" }] }),
  RepositoryModelLoad: (call, reply) => {
    loads.push(call.request);
    if (call.request.model_name !== "slow") reply(null, {});
  },
  RepositoryModelUnload: (_call, reply) => reply(null, {}),
};
const health: ServiceHandlers<HealthService> = {
  Check: (_call, reply) => reply(null, { status: "SERVING" }),
};

let server: Server;
let client: KserveClient;

beforeEach(async () => {
  server = new Server();
  server.addService({ ...inferenceService() }, { ...handlers });
  server.addService({ ...healthService() }, { ...health });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  client = new KserveClient(`127.0.0.1:${port}`);
});

afterEach(() => {
  client.close();
  server.forceShutdown();
  loads.length = 0;
});

describe("KserveClient", () => {
  it("asks for liveness, readiness, health and metadata", async () => {
    expect(await client.serverLive()).toBe(true);
    expect(await client.serverReady()).toBe(false);
    expect(await client.health()).toBe("SERVING");
    expect(await client.serverMetadata()).toEqual({
      name: "triton",
      version: "2.51.0",
      extensions: ["classification"],
    });
    expect(await client.modelReady("known")).toBe(true);
    expect(await client.modelReady("nope")).toBe(false);
    expect((await client.modelMetadata("known")).inputs[0]?.shape).toEqual([-1, 224, 224, 3]);
  });

  it("gives whole messages: defaults filled in, numbers as numbers, absent messages null", async () => {
    const config = await client.modelConfig("known");
    expect(config).toMatchObject({
      name: "known",
      max_batch_size: 8,
      instance_group: [],
      optimization: null,
    });
    expect(config.dynamic_batching).toMatchObject({
      preferred_batch_size: [8],
      max_queue_delay_microseconds: 0,
    });
    const [statistics] = await client.modelStatistics("known");
    expect(statistics).toMatchObject({
      inference_count: 2 ** 40,
      inference_stats: null,
      batch_stats: [{ batch_size: 8 }],
    });
  });

  it("loads with an override, unloads and lists", async () => {
    await client.repositoryLoad("known", '{"name":"known"}');
    await client.repositoryLoad("known");
    await client.repositoryUnload("known");
    expect(loads.map(({ parameters }) => parameters.config?.string_param)).toEqual([
      '{"name":"known"}',
      undefined,
    ]);
    expect(await client.repositoryIndex()).toMatchObject([{ name: "known", state: "READY", reason: "" }]);
    expect(await client.repositoryIndex({ readyOnly: true })).toEqual([]);
  });

  it("infers through the hand-written codec", async () => {
    const request = {
      modelName: "known",
      inputName: "input",
      datatype: "FP32",
      shape: [1, 2],
      raw: Buffer.alloc(8, 1),
      outputName: "probabilities",
      classCount: 1,
    };
    const answer = await client.infer(request);
    expect(inferRequest).toMatchObject({
      model_name: "known",
      inputs: [{ name: "input", datatype: "FP32", shape: [1, 2], contents: null }],
      outputs: [{ name: "probabilities", parameters: { classification: { int64_param: 1 } } }],
      raw_input_contents: [request.raw],
    });
    expect(decodeClassifications(answer.raw[0]!)).toEqual([
      { score: 0.5, classIndex: 285, label: "Egyptian cat" },
    ]);
  });

  it("tells the server's status, the method and the address", async () => {
    const error: unknown = await client.modelMetadata("nope").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(KserveError);
    expect(error).toMatchObject({
      status: GrpcStatusCode.NOT_FOUND,
      method: "ModelMetadata",
      address: client.address,
    });
    expect((error as Error).message).toBe(
      `ModelMetadata at ${client.address}: NOT_FOUND: Request for unknown model: 'nope' is not found`,
    );
  });

  it("keeps deadlines and stops on abort", async () => {
    await expect(client.repositoryLoad("slow", undefined, { deadlineMs: 50 })).rejects.toMatchObject({
      status: GrpcStatusCode.DEADLINE_EXCEEDED,
    });
    const reason = new Error("no longer wanted");
    const controller = new AbortController();
    const call = client.repositoryLoad("slow", undefined, { signal: controller.signal });
    controller.abort(reason);
    await expect(call).rejects.toBe(reason);
    await expect(client.serverLive({ signal: controller.signal })).rejects.toBe(reason);
    const { signal } = new AbortController();
    await client.serverLive({ signal });
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("says UNAVAILABLE when nobody listens", async () => {
    server.forceShutdown();
    await expect(client.serverLive({ deadlineMs: 2000 })).rejects.toMatchObject({
      status: GrpcStatusCode.UNAVAILABLE,
    });
  });
});

it("names status codes", () => {
  expect(grpcStatusName(14)).toBe("UNAVAILABLE");
  expect(grpcStatusName(0)).toBe("OK");
  expect(grpcStatusName(99)).toBe("CODE_99");
});
