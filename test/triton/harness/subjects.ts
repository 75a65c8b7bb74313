/** The two servers that are held to the same tests: the real Triton, and local-triton. */
import { onTestFinished } from "vitest";
import { KserveClient } from "../../../kserve/client";
import { makeRepository, startServer, type TestModel, type TestServer } from "../../local-triton/support";
import { TritonServer, type TritonServerOptions } from "./triton-server";

/** A running server, whichever. It ends with the test. */
export interface Subject extends Pick<
  TestServer,
  "client" | "grpcAddress" | "http" | "metrics" | "repository"
> {
  readonly metricsUrl: string;
  /** What SIGTERM starts; resolves when the server is gone. */
  readonly terminate: () => Promise<void>;
}

export interface SubjectOptions {
  /** Default: all models. */
  readonly loadModels?: readonly string[];
  readonly modelControlMode?: "explicit" | "none";
}

/** Starts a server with these models; their parameters mean the same service times to both. */
export type StartSubject = (models: readonly TestModel[], options?: SubjectOptions) => Promise<Subject>;

export const startLocalSubject: StartSubject = async (models, options) => {
  const started = await startServer(models, options);
  const metricsUrl = `http://127.0.0.1:${started.server.ports.metrics}/metrics`;
  return { ...started, metricsUrl, terminate: () => started.server.shutdown() };
};

export const startTritonSubject: StartSubject = async (models, options) => {
  const repository = makeRepository(models);
  const triton = await startTriton({
    repository,
    loadModels: models.map((model) => model.name ?? "sim"),
    ...options,
  });
  return {
    ...triton,
    repository,
    metricsUrl: triton.server.metricsUrl,
    terminate: async () => void (await triton.server.terminate()),
  };
};

export const subjects: readonly (readonly [name: string, start: StartSubject])[] = [
  ["Triton", startTritonSubject],
  ["local-triton", startLocalSubject],
];

/** A real Triton that ends with the test, and a client for it. */
export async function startTriton(options: TritonServerOptions) {
  const server = await TritonServer.start(options);
  const client = new KserveClient(server.grpcAddress);
  onTestFinished(async () => {
    client.close();
    await server.stop();
  });
  const http: Subject["http"] = async (path, init) => {
    const response = await fetch(`${server.httpUrl}${path}`, init);
    const contentType = response.headers.get("content-type") ?? "";
    return { status: response.status, contentType, body: await response.text() };
  };
  const metrics = async (): Promise<string> => (await fetch(server.metricsUrl)).text();
  return { server, client, grpcAddress: server.grpcAddress, http, metrics };
}
