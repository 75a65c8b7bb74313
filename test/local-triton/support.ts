/** What the tests of local-triton share: model repositories in temporary folders, servers that end with the test, raw gRPC calls. */
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { onTestFinished, vi } from "vitest";
import { KserveClient } from "../../kserve/client";
import { inferenceService } from "../../kserve/load-protos";
import type { Draft, ModelInferRequest } from "../../kserve/messages";
import { grpcStatusName } from "../../kserve/status";
import { LocalTriton, type LocalTritonOptions } from "../../local-triton/server";
import { writeConfigPbtxt } from "../../model-repo/config-pbtxt";
import type { ModelConfig } from "../../model-repo/config-types";

export interface TestModel {
  readonly name?: string;
  /** Image shape. Default [4, 4, 3]. */
  readonly dims?: readonly number[];
  /** Default 10. */
  readonly classes?: number;
  /** Service times, milliseconds. Defaults 0, 0 and 0. */
  readonly hostMsPerImage?: number;
  readonly gpuMsPerBatch?: number;
  readonly gpuMsPerImage?: number;
  /** Default no limit. */
  readonly ingressRequestsPerS?: number;
  /** What else the configuration says, or says differently. */
  readonly config?: ModelConfig;
}

/** Configuration of a model whose service times are given by its parameters. */
export function testConfig(model: TestModel = {}): ModelConfig {
  const parameters = {
    simulated_precision: "fp32",
    simulated_host_ms_per_image: String(model.hostMsPerImage ?? 0),
    simulated_gpu_ms_per_batch: String(model.gpuMsPerBatch ?? 0),
    simulated_gpu_ms_per_image: String(model.gpuMsPerImage ?? 0),
    simulated_ingress_requests_per_s: String(model.ingressRequestsPerS ?? Infinity),
  };
  return {
    name: model.name ?? "sim",
    backend: "sim",
    max_batch_size: 64,
    input: [{ name: "input", data_type: "TYPE_FP32", format: "FORMAT_NHWC", dims: model.dims ?? [4, 4, 3] }],
    output: [
      {
        name: "probabilities",
        data_type: "TYPE_FP32",
        dims: [model.classes ?? 10],
        label_filename: "labels.txt",
      },
    ],
    parameters: Object.fromEntries(
      Object.entries(parameters).map(([key, string_value]) => [key, { string_value }]),
    ),
    ...model.config,
  };
}

/** A repository with these models; removed when the test ends. */
export function makeRepository(models: readonly TestModel[]): string {
  const folder = mkdtempSync(join(tmpdir(), "local-triton-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const model of models) writeModel(folder, model);
  return folder;
}

export function writeModel(folder: string, model: TestModel): void {
  const config = testConfig(model);
  const name = model.name ?? "sim";
  mkdirSync(join(folder, name, "1"), { recursive: true });
  writeFileSync(join(folder, name, "config.pbtxt"), writeConfigPbtxt(config));
  const labels = Array.from({ length: model.classes ?? 10 }, (_unused, index) => `CLASS ${index}`);
  writeFileSync(join(folder, name, "labels.txt"), `${labels.join("\n")}\n`);
}

export interface TestServer {
  readonly server: LocalTriton;
  readonly repository: string;
  readonly client: KserveClient;
  readonly grpcAddress: string;
  readonly log: string[];
  readonly http: (
    path: string,
    init?: RequestInit,
  ) => Promise<{ status: number; contentType: string; body: string }>;
  readonly metrics: () => Promise<string>;
}

/** A server with these models loaded (unless `options` say otherwise), controlled explicitly; ends with the test. */
export async function startServer(
  models: readonly TestModel[],
  options: Partial<LocalTritonOptions> = {},
): Promise<TestServer> {
  const repository = options.modelRepository ?? makeRepository(models);
  const log: string[] = [];
  const isExplicit = options.modelControlMode !== "none";
  const server = await LocalTriton.start({
    modelRepository: repository,
    modelControlMode: "explicit",
    loadModels: isExplicit ? models.map((model) => model.name ?? "sim") : [],
    loadTimeMs: 0,
    log: (line) => log.push(line),
    ...options,
  });
  const grpcAddress = `127.0.0.1:${server.ports.grpc}`;
  // Generous: the tests' machine may be busy with other things.
  const client = new KserveClient(grpcAddress, { deadlineMs: 15_000 });
  onTestFinished(async () => {
    client.close();
    await server.close();
  });
  const http: TestServer["http"] = async (path, init) => {
    const response = await fetch(`http://127.0.0.1:${server.ports.http}${path}`, init);
    const contentType = response.headers.get("content-type") ?? "";
    return { status: response.status, contentType, body: await response.text() };
  };
  const metrics = async (): Promise<string> =>
    (await fetch(`http://127.0.0.1:${server.ports.metrics}/metrics`)).text();
  return { server, repository, client, grpcAddress, log, http, metrics };
}

export interface RawAnswer {
  /** Status by name, e.g. "OK". */
  readonly code: string;
  readonly message: string;
  readonly reply: Buffer | undefined;
}

/** A grpc-js client that sends bytes; closed when the test ends. */
export function rawClient(address: string): Client {
  const client = new Client(address, credentials.createInsecure(), {
    "grpc.max_send_message_length": -1,
    "grpc.max_receive_message_length": -1,
  });
  onTestFinished(() => client.close());
  return client;
}

/** One unary call with serialized messages. Never rejects. */
export function rawCall(
  client: Client,
  path: string,
  message: Buffer,
  deadlineMs = 10_000,
): Promise<RawAnswer> {
  const same = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      path,
      same,
      same,
      message,
      new Metadata(),
      { deadline: Date.now() + deadlineMs },
      (error: ServiceError | null, reply?: Buffer) =>
        resolve({ code: grpcStatusName(error?.code ?? 0), message: error?.details ?? "", reply }),
    );
  });
}

export const MODEL_INFER = "/inference.GRPCInferenceService/ModelInfer";

/** ModelInfer with any request, also a wrong one. */
export function rawInfer(
  client: Client,
  request: Draft<ModelInferRequest>,
  deadlineMs?: number,
): Promise<RawAnswer> {
  return rawCall(client, MODEL_INFER, inferenceService().ModelInfer.requestSerialize(request), deadlineMs);
}

/** A raw FP32 tensor whose values depend on `seed`. */
export function tensor(values: number, seed = 0): Buffer {
  const buffer = Buffer.alloc(values * 4);
  for (let i = 0; i < values; i++) buffer.writeFloatLE((i * 7 + seed * 31) % 256, i * 4);
  return buffer;
}

/** Infers `images` images of a [4, 4, 3] model and asks for the top class. */
export function inferSmall(client: KserveClient, seed = 0, images = 1, modelName = "sim") {
  return client.infer({
    modelName,
    inputName: "input",
    datatype: "FP32",
    shape: [images, 4, 4, 3],
    raw: tensor(images * 48, seed),
    outputName: "probabilities",
    classCount: 1,
  });
}

/** Waits until `check` does not throw or reject; the tests' machine may be busy with other things, so for long. */
export function eventually(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: 10_000, interval: 5 });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** As inferSmall, but asks for the tensor and not for classes. */
export async function inferTensor(address: string, seed = 0): Promise<RawAnswer> {
  const client = rawClient(address);
  return rawInfer(client, {
    model_name: "sim",
    inputs: [{ name: "input", datatype: "FP32", shape: [1, 4, 4, 3] }],
    raw_input_contents: [tensor(48, seed)],
  });
}
