/** A small typed promise client for a KServe v2 server: control plane, and single inferences where throughput does not matter. */
import { Client, credentials, Metadata, type ChannelCredentials, type ServiceError } from "@grpc/grpc-js";
import { healthService, inferenceService, type UnaryMethod } from "./load-protos";
import type * as m from "./messages";
import { grpcStatusName } from "./status";
import {
  decodeInferResponse,
  encodeInferRequest,
  type DecodedInferResponse,
  type InferRequestArgs,
} from "./wire";

/** A call that did not end with OK. */
export class KserveError extends Error {
  override readonly name = "KserveError";
  constructor(
    readonly address: string,
    /** Method's name, e.g. `ModelReady`. */
    readonly method: string,
    /** gRPC status code; see GrpcStatusCode. */
    readonly status: number,
    /** The server's (or the transport's) status message. */
    readonly details: string,
  ) {
    super(`${method} at ${address}: ${grpcStatusName(status)}: ${details}`);
  }
}

export interface KserveClientOptions {
  /** Deadline of a call, milliseconds. Default 5000. */
  readonly deadlineMs?: number;
  /** Deadline of a load or unload, which may build engines, milliseconds. Default 600000. */
  readonly loadDeadlineMs?: number;
  /** Default: plain text. */
  readonly credentials?: ChannelCredentials;
}

/** What one call may override. */
export interface CallOptions {
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
}

/** What a load may override beside the configuration. */
export interface LoadOptions extends CallOptions {
  /** Files of the model by path, e.g. `1/model.onnx`: the server takes them instead of its repository's. Needs a configuration. */
  readonly files?: Readonly<Record<string, Buffer>>;
}

const defaultDeadlineMs = 5_000;
const defaultLoadDeadlineMs = 600_000;
/** An answer of a thousand scores is 4 kB, a repository index of a large server some MB; 4 MB is gRPC's default. */
const maxAnswerBytes = 64 * 1024 * 1024;
/** A server that was away is found again this soon, milliseconds; gRPC's own pauses grow to two minutes. */
const reconnectMs = { first: 200, most: 1000 };

/** ModelInfer with the hand-written codec. */
const inferMethod = {
  path: "/inference.GRPCInferenceService/ModelInfer",
  requestSerialize: encodeInferRequest,
  responseDeserialize: decodeInferResponse,
};

interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (request: Request) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => Response;
}

export class KserveClient {
  private readonly client: Client;
  private readonly deadlineMs: number;
  private readonly loadDeadlineMs: number;
  private readonly service = inferenceService();

  /**
   * @param address host:port of the server's gRPC endpoint. Connecting starts at the first call.
   */
  constructor(
    readonly address: string,
    options: KserveClientOptions = {},
  ) {
    this.deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
    this.loadDeadlineMs = options.loadDeadlineMs ?? defaultLoadDeadlineMs;
    this.client = new Client(address, options.credentials ?? credentials.createInsecure(), {
      "grpc.max_receive_message_length": maxAnswerBytes,
      "grpc.max_send_message_length": -1,
      "grpc.initial_reconnect_backoff_ms": reconnectMs.first,
      "grpc.max_reconnect_backoff_ms": reconnectMs.most,
    });
  }

  private call<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    options: CallOptions = {},
    defaultMs: number = this.deadlineMs,
  ): Promise<Response> {
    return new Promise((resolve, reject) => {
      const { signal } = options;
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => call.cancel();
      const deadline = Date.now() + (options.deadlineMs ?? defaultMs);
      const done = (error: ServiceError | null, response?: Response): void => {
        signal?.removeEventListener("abort", onAbort);
        if (error !== null) {
          const name = method.path.slice(method.path.lastIndexOf("/") + 1);
          reject(
            signal?.aborted === true
              ? (signal.reason as Error)
              : new KserveError(this.address, name, error.code, error.details),
          );
        } else resolve(response as Response);
      };
      const call = this.client.makeUnaryRequest<Request, Response>(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        request,
        new Metadata(),
        { deadline },
        done,
      );
      signal?.addEventListener("abort", onAbort);
    });
  }

  private model<Response>(
    method: UnaryMethod<m.ModelReference, Response>,
    name: string,
    version: string | undefined,
    options?: CallOptions,
  ): Promise<Response> {
    return this.call<m.Draft<m.ModelReference>, Response>(method, { name, version: version ?? "" }, options);
  }

  async serverLive(options?: CallOptions): Promise<boolean> {
    return (await this.call(this.service.ServerLive, {}, options)).live;
  }

  /** With Triton's default --strict-readiness: all models are ready. */
  async serverReady(options?: CallOptions): Promise<boolean> {
    return (await this.call(this.service.ServerReady, {}, options)).ready;
  }

  serverMetadata(options?: CallOptions): Promise<m.ServerMetadataResponse> {
    return this.call(this.service.ServerMetadata, {}, options);
  }

  /** False also for a model that the server does not know. */
  async modelReady(name: string, version?: string, options?: CallOptions): Promise<boolean> {
    return (await this.model(this.service.ModelReady, name, version, options)).ready;
  }

  modelMetadata(name: string, version?: string, options?: CallOptions): Promise<m.ModelMetadataResponse> {
    return this.model(this.service.ModelMetadata, name, version, options);
  }

  /** The configuration in force, defaults filled in. */
  async modelConfig(name: string, version?: string, options?: CallOptions): Promise<m.ModelConfig> {
    const { config } = await this.model(this.service.ModelConfig, name, version, options);
    if (config === null)
      throw new KserveError(this.address, "ModelConfig", 13, `the answer for '${name}' has no config`);
    return config;
  }

  /** Statistics by model and version since the model was loaded; of all models when `name` is empty. */
  async modelStatistics(name: string, version?: string, options?: CallOptions): Promise<m.ModelStatistics[]> {
    return (await this.model(this.service.ModelStatistics, name, version, options)).model_stats;
  }

  async repositoryIndex(options?: CallOptions & { readonly readyOnly?: boolean }): Promise<m.ModelIndex[]> {
    const request = { ready: options?.readyOnly ?? false };
    return (await this.call(this.service.RepositoryIndex, request, options)).models;
  }

  /**
   * Loads (or reloads) a model. Needs --model-control-mode=explicit.
   * @param configJson whole configuration that REPLACES the one in the repository: Triton does not merge a partial one.
   *   Without it Triton keeps an earlier override; unload first to return to the file's configuration.
   */
  async repositoryLoad(name: string, configJson?: string, options?: LoadOptions): Promise<void> {
    const files = Object.entries(options?.files ?? {}).map(
      ([path, bytes_param]) => [`file:${path}`, { bytes_param }] as const,
    );
    const parameters = {
      ...(configJson === undefined ? {} : { config: { string_param: configJson } }),
      ...Object.fromEntries(files),
    };
    const request: m.Draft<m.RepositoryModelRequest> = { model_name: name, parameters };
    await this.call(this.service.RepositoryModelLoad, request, options, this.loadDeadlineMs);
  }

  /** Triton answers OK for a model it does not know, and before requests in flight have finished. */
  async repositoryUnload(name: string, options?: CallOptions): Promise<void> {
    const request: m.Draft<m.RepositoryModelRequest> = { model_name: name };
    await this.call(this.service.RepositoryModelUnload, request, options, this.loadDeadlineMs);
  }

  infer(request: InferRequestArgs, options?: CallOptions): Promise<DecodedInferResponse> {
    return this.call(inferMethod, request, options);
  }

  /** grpc.health.v1: status of a service; of the whole server when left out. */
  async health(service = "", options?: CallOptions): Promise<m.HealthCheckResponse["status"]> {
    return (await this.call(healthService().Check, { service }, options)).status;
  }

  /** Closes the connection; calls in flight end with CANCELLED or UNAVAILABLE. */
  close(): void {
    this.client.close();
  }
}
