import { describe, expect, it } from "vitest";
import { encodeClassifications, encodeInferResponse } from "../../kserve/wire";
import type { KnownAnswer } from "../../loadgen/load-spec";
import { errorKind, RequestSender, type RequestSenderOptions } from "../../loadgen/request-sender";
import type { InferOutcome, Transport } from "../../loadgen/transport";

/** A transport that notes the payloads it is asked for and answers with this function. */
class NotingTransport implements Transport {
  readonly inFlight = 0;
  readonly payloads: number[] = [];
  constructor(private readonly answer: (payload: number) => Partial<InferOutcome>) {}
  async connect(): Promise<void> {}
  async close(): Promise<void> {}
  async infer(payloadIndex: number): Promise<InferOutcome> {
    this.payloads.push(payloadIndex);
    return { status: 0, message: "", serviceTimeUs: 10, reply: undefined, ...this.answer(payloadIndex) };
  }
}

function reply(answer: KnownAnswer): Buffer {
  const output = { name: "out", datatype: "BYTES", shape: [1, 1], raw: encodeClassifications([answer]) };
  return encodeInferResponse({ modelName: "m", modelVersion: "1", outputs: [output] });
}

const answers: KnownAnswer[] = [0, 1, 2].map((i) => ({ classIndex: i, label: `label ${i}`, score: 0.5 }));

function sender(transports: NotingTransport[], change: Partial<RequestSenderOptions> = {}): RequestSender {
  return new RequestSender({
    transports: transports.map((transport, i) => ({ address: `s${i}:1`, transport })),
    payloadBytes: [100, 200, 300],
    knownAnswers: answers,
    outputName: "out",
    scoreTolerance: 0.01,
    checkEvery: 1,
    workerIndex: 0,
    ...change,
  });
}

describe("RequestSender", () => {
  it("takes turns over addresses and images, so that every address sees every image alike", async () => {
    const transports = [
      new NotingTransport((i) => ({ reply: reply(answers[i]!) })),
      new NotingTransport((i) => ({ reply: reply(answers[i]!) })),
    ];
    const one = sender(transports);
    for (let i = 0; i < 12; i++)
      expect(await one.send(100)).toMatchObject({ address: `s${i % 2}:1`, error: undefined });
    for (const { payloads } of transports) expect(payloads).toEqual([0, 1, 2, 0, 1, 2]);
    expect(one.bytesSent).toBe(4 * (100 + 200 + 300));
  });

  it("workers start at different addresses", async () => {
    const transports = [new NotingTransport(() => ({})), new NotingTransport(() => ({}))];
    const one = sender(transports, { workerIndex: 1, checkEvery: 0 });
    expect(await one.send(100)).toMatchObject({ address: "s1:1" });
  });

  it("a reply that belongs to another image is a wrong answer", async () => {
    const one = sender([new NotingTransport((i) => ({ reply: reply(answers[(i + 1) % 3]!) }))]);
    expect((await one.send(100)).error).toEqual({
      kind: "wrong-answer",
      message: "image 0: class 1 (label 1) instead of 0 (label 0)",
    });
  });

  it("checks each n-th answered request; failed ones do not count", async () => {
    let n = 0;
    const one = sender(
      [new NotingTransport(() => (n++ % 2 === 0 ? { status: 14 } : { reply: Buffer.alloc(0) }))],
      { checkEvery: 3 },
    );
    const kinds: (string | undefined)[] = [];
    for (let i = 0; i < 12; i++) kinds.push((await one.send(100)).error?.kind);
    expect(kinds.filter((kind) => kind === "UNAVAILABLE")).toHaveLength(6);
    expect(kinds.flatMap((kind, i) => (kind === "wrong-answer" ? [i] : []))).toEqual([5, 11]);
  });

  it("an OK without a reply is a wrong answer when it is checked", async () => {
    expect((await sender([new NotingTransport(() => ({}))]).send(100)).error?.kind).toBe("wrong-answer");
  });
});

describe("errorKind", () => {
  it("names statuses, and tells this client's own failure from the server's (grpc-node#2948)", () => {
    expect(errorKind(14, "gone")).toBe("UNAVAILABLE");
    expect(errorKind(8, "queue full")).toBe("RESOURCE_EXHAUSTED");
    expect(errorKind(8, "Bandwidth exhausted or memory limit exceeded")).toBe("client-error");
    expect(errorKind(99, "")).toBe("CODE_99");
  });
});
