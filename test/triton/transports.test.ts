import { describe, expect, it, onTestFinished } from "vitest";
import { decodeClassifications, decodeInferResponse } from "../../kserve/wire";
import { createTransport } from "../../loadgen/create-transport";
import { PayloadSource } from "../../loadgen/payloads";
import { GrpcStatus, type Transport } from "../../loadgen/transport";
import { imagesFolder } from "../../model-repo/repository";
import { PHOTO } from "../local-triton/infer-cases";
import { sleep, type TestModel } from "../local-triton/support";
import { startTritonSubject, type Subject } from "./harness/subjects";

const DEADLINE_MS = 20_000;

async function connect(
  kind: "lean" | "grpc-js",
  server: Subject,
  modelName = "sim",
  connections = 2,
): Promise<Transport> {
  const payloads = await new PayloadSource().load({
    imageFolder: imagesFolder,
    modelName,
    inputName: "input",
    outputName: "probabilities",
    inputType: "FP32",
  });
  const transport = createTransport(kind, { address: server.grpcAddress, payloads, connections });
  onTestFinished(() => transport.close());
  await transport.connect();
  return transport;
}

const BATCHED: TestModel = {
  ...PHOTO,
  gpuMsPerBatch: 10,
  config: { max_batch_size: 8, dynamic_batching: { max_queue_delay_microseconds: 5000 } },
};

describe.each(["lean", "grpc-js"] as const)("transport %s to a real Triton", (kind) => {
  it("brings every image of 602,112 bytes there and its class back, many at once in batches", async () => {
    const server = await startTritonSubject([BATCHED]);
    const transport = await connect(kind, server);
    const classOf = (reply: Buffer | undefined): number => {
      const response = decodeInferResponse(reply!);
      expect(response.outputs[0]).toMatchObject({ name: "probabilities", datatype: "BYTES" });
      return decodeClassifications(response.raw[0]!)[0]!.classIndex;
    };
    const alone: number[] = [];
    for (const index of [0, 1, 2]) {
      const outcome = await transport.infer(index, DEADLINE_MS);
      expect(outcome).toMatchObject({ status: GrpcStatus.OK, message: "" });
      // The batch takes 10 ms after a delay of 5 ms.
      expect(outcome.serviceTimeUs).toBeGreaterThan(15_000);
      alone.push(classOf(outcome.reply));
    }
    expect(new Set(alone).size).toBe(3);
    const together = await Promise.all(
      Array.from({ length: 120 }, (_unused, i) => transport.infer(i % 3, DEADLINE_MS)),
    );
    expect(together.map(({ reply }) => classOf(reply))).toEqual(together.map((_unused, i) => alone[i % 3]));
    const [stats] = await server.client.modelStatistics("sim");
    expect(stats!.inference_stats!.success!.count).toBe(123);
    expect(stats!.execution_count).toBeLessThan(100);
  });

  it("tells Triton's refusals apart, and a deadline", async () => {
    const server = await startTritonSubject([
      { ...PHOTO, gpuMsPerBatch: 400, config: { max_batch_size: 1 } },
      {
        ...PHOTO,
        name: "short",
        gpuMsPerBatch: 400,
        config: { max_batch_size: 1, dynamic_batching: { default_queue_policy: { max_queue_size: 1 } } },
      },
    ]);
    const unknown = await (await connect(kind, server, "nope")).infer(0, DEADLINE_MS);
    expect(unknown).toMatchObject({
      status: GrpcStatus.NOT_FOUND,
      message: "Request for unknown model: 'nope' is not found",
    });
    const late = await (await connect(kind, server)).infer(0, 150);
    expect(late.status).toBe(GrpcStatus.DEADLINE_EXCEEDED);
    const queue = await connect(kind, server, "short");
    const crowd = await Promise.all(Array.from({ length: 8 }, () => queue.infer(0, DEADLINE_MS)));
    const refused = crowd.filter(({ status }) => status === GrpcStatus.UNAVAILABLE);
    expect(refused.length).toBeGreaterThan(2);
    expect(refused[0]!.message).toBe("[request id: <id_unknown>] Exceeds maximum queue size");
    expect(crowd.some(({ status }) => status === GrpcStatus.OK)).toBe(true);
  });

  it("ends every request when the server stops", async () => {
    const server = await startTritonSubject([{ ...BATCHED, gpuMsPerBatch: 100 }]);
    const transport = await connect(kind, server);
    expect((await transport.infer(0, DEADLINE_MS)).status).toBe(GrpcStatus.OK);
    const inside = Array.from({ length: 6 }, (_unused, i) => transport.infer(i % 3, DEADLINE_MS));
    await sleep(30);
    await server.terminate();
    for (const { status } of await Promise.all(inside))
      expect([GrpcStatus.OK, GrpcStatus.UNAVAILABLE, GrpcStatus.NOT_FOUND]).toContain(status);
    expect((await transport.infer(0, 1000)).status).toBe(GrpcStatus.UNAVAILABLE);
    expect(transport.inFlight).toBe(0);
  });
});
