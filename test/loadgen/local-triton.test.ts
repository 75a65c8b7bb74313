/** Load generator and embedded server together: both transports, the answer check, and time dilation on both sides. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { decodeClassifications, decodeInferResponse } from "../../kserve/wire";
import { createTransport } from "../../loadgen/create-transport";
import type { KnownAnswer, LoadSpec } from "../../loadgen/load-spec";
import { startLocalCluster, type LocalCluster } from "../../loadgen/local-cluster";
import { PayloadSource } from "../../loadgen/payloads";
import { startServer } from "../local-triton/support";
import { imageFolder, loadSpec } from "./support/spec";

let cluster: LocalCluster;
let images: string;

beforeAll(async () => {
  images = await imageFolder(3);
  cluster = await startLocalCluster({ workers: 1 });
}, 60_000);
afterAll(async () => {
  await cluster.close();
  await rm(images, { recursive: true, force: true });
});

/** What the server answers to each image, one at a time. */
async function answersOf(spec: LoadSpec): Promise<KnownAnswer[]> {
  const payloads = await new PayloadSource().load(spec);
  const transport = createTransport(spec.transport, {
    address: spec.addresses[0]!,
    payloads,
    connections: 1,
  });
  await transport.connect();
  const answers: KnownAnswer[] = [];
  for (const index of payloads.keys()) {
    const { status, reply } = await transport.infer(index, 10_000);
    expect(status).toBe(0);
    const [top] = decodeClassifications(decodeInferResponse(reply!).raw[0]!);
    answers.push({ ...top!, label: top!.label! });
  }
  await transport.close();
  return answers;
}

it.each(["lean", "grpc-js"] as const)(
  "%s: every reply is the answer to its image, and a mixed-up one is found",
  async (transport) => {
    const { grpcAddress } = await startServer([{ dims: [224, 224, 3], classes: 1000 }]);
    const base = loadSpec({
      addresses: [grpcAddress],
      imageFolder: images,
      modelName: "sim",
      inputType: "FP32",
      transport,
      // 602 kB each: a rate and a deadline that also a busy machine keeps with grpc-js
      shape: { kind: "constant", ratePerS: 30 },
      measureS: 1,
      deadlineMs: 15_000,
    });
    const knownAnswers = await answersOf(base);
    expect(new Set(knownAnswers.map(({ label }) => label)).size).toBeGreaterThan(1);
    const right = await cluster.run({ ...base, id: `${transport}-right`, knownAnswers });
    expect(right.errors).toEqual({});
    expect(right.total).toMatchObject({ planned: 30, failed: 0 });
    const moved = [...knownAnswers.slice(1), knownAnswers[0]!];
    const wrong = await cluster.run({ ...base, id: `${transport}-wrong`, knownAnswers: moved });
    expect(wrong.errors["wrong-answer"]).toBeGreaterThan(15);
  },
);

it("in dilated time, a batch of 40 ms on the simulated GPU takes 40 ms", async () => {
  const model = { dims: [224, 224, 3], classes: 1000, gpuMsPerBatch: 40 };
  const { grpcAddress } = await startServer([model], { timeDilation: 3 });
  const shape = { kind: "constant", ratePerS: 5 } as const;
  const result = await cluster.run(
    loadSpec({
      addresses: [grpcAddress],
      imageFolder: images,
      modelName: "sim",
      inputType: "FP32",
      shape,
      timeDilation: 3,
      measureS: 1,
    }),
  );
  expect(result.total).toMatchObject({ planned: 5, failed: 0 });
  expect(result.service.p50Ms).toBeGreaterThanOrEqual(40);
  // in wall time it is 120 ms
  expect(result.service.p50Ms).toBeLessThan(110);
});
