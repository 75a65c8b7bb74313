import { healthService, inferenceService, type UnaryMethod } from "../../kserve/load-protos";
import type { Draft, HealthCheckRequest, HealthCheckResponse } from "../../kserve/messages";
import { GrpcStatusCode } from "../../kserve/status";
import { StatusError } from "../grpc/status";
import type { UnaryHandler } from "../grpc/unary-call";
import { inferHandler } from "../infer/infer-handler";
import type { ModelClock } from "../model-clock";
import type { ModelStore } from "../models/model-store";
import { modelMetadata, serverMetadata } from "./server-state";

/** Answers of a server that was told to end (observed on Triton 2.51). */
const EXITING = "Server exiting";
const NOT_READY = "Server not ready";

/** All gRPC methods by path: inference.GRPCInferenceService and grpc.health.v1.Health. */
export function grpcMethods(store: ModelStore, clock: ModelClock): Map<string, UnaryHandler> {
  const inference = inferenceService();
  const health = healthService();
  const methods = new Map<string, UnaryHandler>();
  const add = <Request, Response>(
    method: UnaryMethod<Request, Response>,
    answer: (request: Request) => Draft<Response> | Promise<Draft<Response>>,
    whenStopping?: string,
  ): void => {
    const handler = controlHandler(method, (request: Request) => {
      if (store.isStopping && whenStopping !== undefined)
        throw new StatusError(GrpcStatusCode.UNAVAILABLE, whenStopping);
      return answer(request);
    });
    methods.set(method.path, handler);
  };
  add(inference.ServerLive, () => ({ live: true }), EXITING);
  add(inference.ServerReady, () => ({ ready: store.ready }), EXITING);
  add(inference.ServerMetadata, () => serverMetadata);
  add(inference.ModelReady, ({ name, version }) => ({ ready: store.isReady(name, version) }), NOT_READY);
  add(inference.ModelMetadata, ({ name, version }) => modelMetadata(store.find(name, version)));
  add(inference.ModelConfig, ({ name, version }) => ({ config: store.find(name, version).config }));
  add(
    inference.ModelStatistics,
    ({ name, version }) => ({ model_stats: store.statistics(name, version) }),
    NOT_READY,
  );
  add(inference.RepositoryIndex, ({ ready }) => ({ models: store.index(ready) }), NOT_READY);
  add(
    inference.RepositoryModelLoad,
    async ({ model_name, parameters }) => {
      for (const name of Object.keys(parameters)) {
        if (name !== "config") throw unsupportedParameter(name);
      }
      await store.load(model_name, parameters["config"]?.string_param);
      return {};
    },
    NOT_READY,
  );
  add(
    inference.RepositoryModelUnload,
    async ({ model_name }) => {
      await store.unload(model_name);
      return {};
    },
    NOT_READY,
  );
  add<HealthCheckRequest, HealthCheckResponse>(
    health.Check,
    () => ({
      status: store.ready ? "SERVING" : "NOT_SERVING",
    }),
    EXITING,
  );
  methods.set(inference.ModelInfer.path, inferHandler(store, clock));
  return methods;
}

/** A control-plane method: convenience before speed. */
function controlHandler<Request, Response>(
  method: UnaryMethod<Request, Response>,
  answer: (request: Request) => Draft<Response> | Promise<Draft<Response>>,
): UnaryHandler {
  return (message, call) => {
    let request: Request;
    try {
      // protobufjs keeps views of byte fields, and the message's memory is used again.
      request = method.requestDeserialize(Buffer.from(message));
    } catch (error) {
      throw new StatusError(GrpcStatusCode.INTERNAL, `the request cannot be decoded: ${String(error)}`);
    }
    const respond = async (): Promise<void> => {
      try {
        call.respond(method.responseSerialize(await answer(request)));
      } catch (error) {
        call.failWith(error);
      }
    };
    void respond();
  };
}

function unsupportedParameter(name: string): StatusError {
  return new StatusError(
    GrpcStatusCode.INVALID_ARGUMENT,
    `load parameter '${name}' is not supported by this server; it takes 'config' (model files come from the repository only)`,
  );
}
