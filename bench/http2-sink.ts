/**
 * A node:http2 server that swallows inference requests and answers each with the same small tensor at once; a process of its own for the load
 * benches. Prints its port. It says enough about its model for clients that ask first.
 */
import * as http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { withGrpcPrefix } from "../http2/grpc-prefix";
import { inferenceService, type InferenceService } from "../kserve/load-protos";
import { encodeInferResponse } from "../kserve/wire";
import { request } from "./load-work";

const head = { ":status": 200, "content-type": "application/grpc" };
const { modelName: name, inputName, datatype, shape, outputName } = request;
const outputs = [{ name: outputName, datatype, shape: [1, 1] }];
const service = inferenceService();

const inferReply = withGrpcPrefix(
  encodeInferResponse({
    modelName: name,
    modelVersion: "1",
    outputs: outputs.map((output) => ({ ...output, raw: Buffer.alloc(4) })),
  }),
);
const otherReplies = new Map<string, Buffer>(
  Object.entries({
    ServerLive: service.ServerLive.responseSerialize({ live: true }),
    ServerReady: service.ServerReady.responseSerialize({ ready: true }),
    ModelReady: service.ModelReady.responseSerialize({ ready: true }),
    ServerMetadata: service.ServerMetadata.responseSerialize({ name: "sink", version: "1", extensions: [] }),
    ModelMetadata: service.ModelMetadata.responseSerialize({
      ...{ name, versions: ["1"], platform: "sink" },
      ...{ inputs: [{ name: inputName, datatype, shape: [...shape] }], outputs },
    }),
    ModelConfig: service.ModelConfig.responseSerialize({ config: { name } }),
    ModelStatistics: service.ModelStatistics.responseSerialize({ model_stats: [] }),
  } satisfies Partial<Record<keyof InferenceService, Buffer>>).map(([method, message]) => [
    `/inference.GRPCInferenceService/${method}`,
    withGrpcPrefix(message),
  ]),
);

const server = http2.createServer({
  settings: { initialWindowSize: 8 << 20, maxConcurrentStreams: 1000 },
  maxSessionMemory: 1000,
});
server.on("session", (session) => session.setLocalWindowSize(64 << 20));
server.on("stream", (stream, headers) => {
  stream.on("error", () => undefined);
  stream.resume();
  stream.on("end", () => {
    if (stream.destroyed) return;
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(otherReplies.get(headers[":path"] ?? "") ?? inferReply);
  });
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
