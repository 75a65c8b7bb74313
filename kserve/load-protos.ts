/**
 * Loads this room's .proto files and gives typed service definitions, usable for a grpc-js server
 * (`server.addService(definition, handlers)`) and for a client alike.
 */
import { join } from "node:path";
import type { handleUnaryCall, MethodDefinition } from "@grpc/grpc-js";
import { loadSync, type Options, type PackageDefinition } from "@grpc/proto-loader";
import type * as m from "./messages";

/** A unary method: what may be sent is a draft, what arrives is whole. */
export type UnaryMethod<Request, Response> = Omit<
  MethodDefinition<Draft<Request>, Draft<Response>>,
  "requestDeserialize" | "responseDeserialize"
> & {
  requestDeserialize: (bytes: Buffer) => Request;
  responseDeserialize: (bytes: Buffer) => Response;
};
type Draft<T> = m.Draft<T>;

/** The methods of inference.GRPCInferenceService that this project knows. */
export interface InferenceService {
  ServerLive: UnaryMethod<m.Empty, m.ServerLiveResponse>;
  ServerReady: UnaryMethod<m.Empty, m.ServerReadyResponse>;
  ServerMetadata: UnaryMethod<m.Empty, m.ServerMetadataResponse>;
  ModelReady: UnaryMethod<m.ModelReference, m.ModelReadyResponse>;
  ModelMetadata: UnaryMethod<m.ModelReference, m.ModelMetadataResponse>;
  ModelConfig: UnaryMethod<m.ModelReference, m.ModelConfigResponse>;
  ModelStatistics: UnaryMethod<m.ModelReference, m.ModelStatisticsResponse>;
  ModelInfer: UnaryMethod<m.ModelInferRequest, m.ModelInferResponse>;
  RepositoryIndex: UnaryMethod<m.RepositoryIndexRequest, m.RepositoryIndexResponse>;
  RepositoryModelLoad: UnaryMethod<m.RepositoryModelRequest, m.Empty>;
  RepositoryModelUnload: UnaryMethod<m.RepositoryModelRequest, m.Empty>;
}

/** grpc.health.v1.Health, unary part. */
export interface HealthService {
  Check: UnaryMethod<m.HealthCheckRequest, m.HealthCheckResponse>;
}

/** Handlers for `server.addService`: one a method. */
export type ServiceHandlers<Service> = {
  [K in keyof Service]: Service[K] extends UnaryMethod<infer Request, infer Response>
    ? handleUnaryCall<Request, m.Draft<Response>>
    : never;
};

/** How messages look on the JavaScript side; described at the top of messages.ts. */
export const protoOptions: Options = { keepCase: true, longs: Number, enums: String, defaults: true };

const protoFolder = join(__dirname, "proto");
let loaded: PackageDefinition | undefined;

function packages(): PackageDefinition {
  loaded ??= loadSync(["grpc_service.proto", "health.proto"], {
    ...protoOptions,
    includeDirs: [protoFolder],
  });
  return loaded;
}

function service(name: string): unknown {
  const found = packages()[name];
  if (found === undefined) throw new Error(`${protoFolder} defines no service ${name}`);
  return found;
}

/** Definition of inference.GRPCInferenceService. Reads the files at the first call. */
export function inferenceService(): InferenceService {
  return service("inference.GRPCInferenceService") as InferenceService;
}

/** Definition of grpc.health.v1.Health. */
export function healthService(): HealthService {
  return service("grpc.health.v1.Health") as HealthService;
}
