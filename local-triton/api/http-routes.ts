import { GrpcStatusCode } from "../../kserve/status";
import type { ModelIndex } from "../../kserve/messages";
import { StatusError } from "../grpc/status";
import type { ModelStore } from "../models/model-store";
import { errorReply, type HttpReply, type HttpRequest, type HttpRoute, jsonReply } from "./http-server";
import { modelMetadata, serverMetadata } from "./server-state";

const EMPTY: HttpReply = { status: 200, contentType: "text/plain", body: "" };
const EMPTY_JSON: HttpReply = { status: 200, contentType: "application/json", body: "" };

/** KServe v2 over HTTP: health, metadata, configuration, statistics and repository. Inference is offered over gRPC only. */
export function httpRoutes(store: ModelStore): HttpRoute {
  return (request) => {
    const decoded = decodePath(request.path);
    if (decoded === null) return notFound();
    const [root, ...parts] = decoded;
    if (root !== "v2") return notFound();
    const [first, second] = parts;
    if (first === undefined || first === "") return get(request, () => jsonReply(serverMetadata));
    if (first === "health" && parts.length === 2) return health(request, second!, store);
    if (first === "models") return models(request, parts.slice(1), store);
    if (first === "repository") return repository(request, parts.slice(1), store);
    return notFound();
  };
}

/** Segments behind the first slash; null when the path is not well encoded. */
function decodePath(path: string): string[] | null {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return null;
  }
}

function health(request: HttpRequest, what: string, store: ModelStore): HttpReply {
  if (what === "live") return get(request, () => EMPTY);
  if (what === "ready") return get(request, () => (store.ready ? EMPTY : { ...EMPTY, status: 400 }));
  return notFound();
}

function models(request: HttpRequest, parts: readonly string[], store: ModelStore): HttpReply {
  const [name, ...rest] = parts;
  if (name === "stats" && rest.length === 0) {
    return get(request, () => jsonReply({ model_stats: store.statistics("", "") }));
  }
  if (name === undefined || name === "") return notFound();
  const versioned = rest[0] === "versions" && rest[1] !== undefined;
  const version = versioned ? rest[1]! : "";
  const action = (versioned ? rest.slice(2) : rest).join("/");
  switch (action) {
    case "":
      return get(request, () => jsonReply(modelMetadata(store.find(name, version))));
    case "config":
      return get(request, () => jsonReply(store.find(name, version).config));
    case "stats":
      return get(request, () => jsonReply({ model_stats: store.statistics(name, version) }));
    case "ready":
      return get(request, () =>
        store.isReady(name, version) ? EMPTY : errorReply(400, "Model version not ready", "text/plain"),
      );
    case "infer":
      return post(request, () => inferenceOverHttp(name, version, store));
    default:
      return notFound();
  }
}

function inferenceOverHttp(name: string, version: string, store: ModelStore): HttpReply {
  try {
    store.find(name, version);
  } catch (error) {
    if (error instanceof StatusError && error.code === GrpcStatusCode.NOT_FOUND) {
      return errorReply(404, error.message, "text/plain");
    }
    throw error;
  }
  throw new StatusError(
    GrpcStatusCode.UNIMPLEMENTED,
    "this server does not offer inference over HTTP; use ModelInfer of the gRPC endpoint",
  );
}

function repository(
  request: HttpRequest,
  parts: readonly string[],
  store: ModelStore,
): HttpReply | Promise<HttpReply> {
  if (parts.length === 1 && parts[0] === "index") {
    return post(request, () => jsonReply(store.index(bodyOf(request)["ready"] === true).map(indexJson)));
  }
  const [kind, name, action, ...rest] = parts;
  if (kind !== "models" || name === undefined || rest.length > 0) return notFound();
  if (action === "load") {
    return post(request, async () => {
      await store.load(name, overrideOf(request));
      return EMPTY_JSON;
    });
  }
  if (action === "unload") {
    return post(request, async () => {
      await store.unload(name);
      return EMPTY_JSON;
    });
  }
  return notFound();
}

/** Triton leaves empty fields out. */
function indexJson({ name, version, state, reason }: ModelIndex): Record<string, string> {
  const json: Record<string, string> = { name };
  if (version !== "") json["version"] = version;
  if (state !== "") json["state"] = state;
  if (reason !== "") json["reason"] = reason;
  return json;
}

function overrideOf(request: HttpRequest): string | undefined {
  const parameters = bodyOf(request)["parameters"];
  if (parameters === undefined) return undefined;
  if (typeof parameters !== "object" || parameters === null) throw badBody("'parameters' is no object");
  for (const [name, value] of Object.entries(parameters)) {
    if (name !== "config" || typeof value !== "string") {
      throw badBody(
        `load parameter '${name}' is not supported by this server; it takes 'config' as a JSON string`,
      );
    }
  }
  return (parameters as { config?: string }).config;
}

function bodyOf(request: HttpRequest): Readonly<Record<string, unknown>> {
  if (request.body.length === 0) return {};
  let json: unknown;
  try {
    json = JSON.parse(request.body.toString("utf8"));
  } catch (error) {
    throw new StatusError(
      GrpcStatusCode.INTERNAL,
      `failed to parse the request JSON buffer: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (typeof json !== "object" || json === null) throw badBody("the request body is no JSON object");
  return json as Readonly<Record<string, unknown>>;
}

function get<T>(request: HttpRequest, reply: () => T): T | HttpReply {
  return request.method === "GET" ? reply() : errorReply(405, "Method Not Allowed", "text/plain");
}

function post<T>(request: HttpRequest, reply: () => T): T | HttpReply {
  return request.method === "POST" ? reply() : errorReply(405, "Method Not Allowed", "text/plain");
}

function notFound(): HttpReply {
  return errorReply(404, "Not Found", "text/plain");
}

function badBody(message: string): StatusError {
  return new StatusError(GrpcStatusCode.INVALID_ARGUMENT, message);
}
