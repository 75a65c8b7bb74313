/** What every transport must do. Called by one test file a transport. */
import { constants } from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { GrpcStatusCode as Status } from "../../kserve/status";
import type { InferOutcome, Transport, TransportOptions } from "../../loadgen/transport";
import { digestOf, GrpcServer, message, type Instruction } from "./support/grpc-server";

const deadlineMs = 5000;
const tensorBytes = 602_112;

export function describeTransport(name: string, create: (options: TransportOptions) => Transport): void {
  const opened: Transport[] = [];
  const servers: GrpcServer[] = [];

  afterEach(async () => {
    for (const transport of opened.splice(0)) await transport.close();
    for (const server of servers.splice(0)) await server.close();
  });

  async function listen(...args: Parameters<typeof GrpcServer.listen>): Promise<GrpcServer> {
    const server = await GrpcServer.listen(...args);
    servers.push(server);
    return server;
  }

  async function connect(server: GrpcServer, payloads: Buffer[], connections = 1): Promise<Transport> {
    const transport = create({ address: server.address, payloads, connections });
    opened.push(transport);
    await transport.connect();
    return transport;
  }

  /** Sends one message over a fresh connection. */
  async function exchange(instruction: Instruction, bytes = 0): Promise<InferOutcome> {
    return (await connect(await listen(), [message(instruction, bytes)])).infer(0, deadlineMs);
  }

  async function untilOk(transport: Transport): Promise<InferOutcome> {
    for (let attempt = 0; ; attempt++) {
      const outcome = await transport.infer(0, deadlineMs);
      if (outcome.status === Status.OK || attempt > 100) return outcome;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  function expectDigest(outcome: InferOutcome, sent: Buffer): void {
    expect(outcome).toMatchObject({ status: Status.OK, message: "" });
    expect(JSON.parse(outcome.reply!.toString())).toEqual(digestOf(sent));
  }

  describe(`${name}: requests and replies`, () => {
    it.each([1, 100, 16_384 - 5, 16_384 - 4, 65_535, tensorBytes])(
      "delivers a message of about %i bytes unchanged and brings the reply back",
      async (bytes) => {
        const sent = message({ do: "digest" }, bytes);
        const server = await listen();
        const transport = await connect(server, [sent]);
        const outcome = await transport.infer(0, deadlineMs);
        expectDigest(outcome, sent);
        expect(outcome.serviceTimeUs).toBeGreaterThan(0);
        expect(server.headers[0]).toMatchObject({
          ":method": "POST",
          ":path": "/inference.GRPCInferenceService/ModelInfer",
          ":authority": server.address,
          te: "trailers",
        });
        expect(server.headers[0]!["content-type"]).toMatch(/^application\/grpc/);
        expect(server.headers[0]!["grpc-timeout"]).toMatch(/^\d{1,8}[mu]$/);
        expect(parseInt(server.headers[0]!["grpc-timeout"] as string)).toBeGreaterThan(deadlineMs - 1000);
      },
    );

    it("sends the payload that is asked for, many at once over several connections", async () => {
      const payloads = Array.from({ length: 7 }, (_, i) =>
        message({ do: "digest", delayMs: i % 3 }, 30_000 + i),
      );
      const server = await listen();
      const transport = await connect(server, payloads, 4);
      expect(server.sessionsSeen).toBe(4);
      const indices = Array.from({ length: 200 }, (_, i) => i % payloads.length);
      const pending = indices.map((index) => transport.infer(index, deadlineMs));
      expect(transport.inFlight).toBe(200);
      const outcomes = await Promise.all(pending);
      outcomes.forEach((outcome, i) => expectDigest(outcome, payloads[indices[i]!]!));
      expect(transport.inFlight).toBe(0);
      expect(server.sessionsSeen).toBe(4);
      expect(server.mostConcurrent).toBeLessThan(60);
    });

    it("joins a reply that comes in many DATA frames", async () => {
      const sent = message({ do: "digest", chunkBytes: 1 });
      expectDigest(await (await connect(await listen(), [sent])).infer(0, deadlineMs), sent);
    });

    it("takes an empty reply message and a large one, and refuses one over 4 MiB", async () => {
      expect(await exchange({ do: "reply", bytes: 0 })).toMatchObject({
        status: Status.OK,
        reply: Buffer.alloc(0),
      });
      const large = await exchange({ do: "reply", bytes: 3_000_000 });
      expect(large.status).toBe(Status.OK);
      expect(large.reply!.equals(Buffer.alloc(3_000_000, 7))).toBe(true);
      const over = await exchange({ do: "reply", bytes: 4 * 1024 * 1024 + 1 });
      expect(over).toMatchObject({ status: Status.RESOURCE_EXHAUSTED, reply: undefined });
    });

    it("many large replies do not exhaust the receive window", async () => {
      const transport = await connect(await listen(), [message({ do: "reply", bytes: 1_000_000 })]);
      for (let i = 0; i < 40; i++) expect((await transport.infer(0, deadlineMs)).status).toBe(Status.OK);
    });
  });

  describe(`${name}: errors of the server`, () => {
    const text = 'model "größe" is 100 % unknown,\nsee log: ✗';
    it.each([true, false])("status and percent-encoded message, trailers-only: %s", async (trailersOnly) => {
      const outcome = await exchange({ do: "error", status: Status.NOT_FOUND, message: text, trailersOnly });
      expect(outcome).toMatchObject({ status: Status.NOT_FOUND, message: text, reply: undefined });
    });

    it("an error before the request was read; the connection goes on", async () => {
      const early = message({ do: "early-error", status: Status.RESOURCE_EXHAUSTED }, 5_000_000);
      const fine = message({ do: "digest" });
      const server = await listen();
      const transport = await connect(server, [early, fine]);
      expect((await transport.infer(0, deadlineMs)).status).toBe(Status.RESOURCE_EXHAUSTED);
      expectDigest(await transport.infer(1, deadlineMs), fine);
      expect(server.sessionsSeen).toBe(1);
    });

    it.each([
      [constants.NGHTTP2_NO_ERROR, Status.INTERNAL],
      [constants.NGHTTP2_PROTOCOL_ERROR, Status.INTERNAL],
      [constants.NGHTTP2_INTERNAL_ERROR, Status.INTERNAL],
      [constants.NGHTTP2_REFUSED_STREAM, Status.UNAVAILABLE],
      [constants.NGHTTP2_CANCEL, Status.CANCELLED],
      [constants.NGHTTP2_ENHANCE_YOUR_CALM, Status.RESOURCE_EXHAUSTED],
      [constants.NGHTTP2_INADEQUATE_SECURITY, Status.PERMISSION_DENIED],
    ])("RST_STREAM with code %i becomes status %i", async (code, status) => {
      const server = await listen();
      const fine = message({ do: "digest" });
      const transport = await connect(server, [message({ do: "reset", code }), fine]);
      expect((await transport.infer(0, deadlineMs)).status).toBe(status);
      expectDigest(await transport.infer(1, deadlineMs), fine);
      expect(server.sessionsSeen).toBe(1);
    });

    it.each([
      [400, Status.INTERNAL],
      [401, Status.UNAUTHENTICATED],
      [403, Status.PERMISSION_DENIED],
      [404, Status.UNIMPLEMENTED],
      [429, Status.UNAVAILABLE],
      [500, Status.UNKNOWN],
      [502, Status.UNAVAILABLE],
      [503, Status.UNAVAILABLE],
      [504, Status.UNAVAILABLE],
    ])("HTTP status %i without grpc-status becomes status %i", async (http, status) => {
      expect((await exchange({ do: "http", status: http, contentType: "text/html" })).status).toBe(status);
    });

    it.each<[string, string, Record<string, string>]>([
      ["no grpc-status", "000000000101", {}],
      ["a grpc-status that is no number", "000000000101", { "grpc-status": "fine" }],
      ["two messages", "000000000101000000000101", { "grpc-status": "0" }],
      ["status OK but no message", "", { "grpc-status": "0" }],
      ["a message that is cut off", "000000000a0102", { "grpc-status": "0" }],
      ["a prefix that is cut off", "000000", { "grpc-status": "0" }],
      ["a compressed message that nobody asked for", "010000000101", { "grpc-status": "0" }],
    ])("a reply with %s never counts as OK", async (_, hex, trailers) => {
      const transport = await connect(await listen(), [message({ do: "body", hex, trailers })]);
      const outcome = await transport.infer(0, 300);
      expect(outcome.status).not.toBe(Status.OK);
      expect(outcome.reply).toBeUndefined();
    });

    it("an error status in trailers wins over a message before it", async () => {
      const trailers = { "grpc-status": "14", "grpc-message": "gone" };
      expect(await exchange({ do: "body", hex: "000000000101", trailers })).toMatchObject({
        status: Status.UNAVAILABLE,
        message: "gone",
        reply: undefined,
      });
    });
  });

  describe(`${name}: flow control and settings`, () => {
    it.each([1, 1000, 65_535, 100_000])(
      "stream windows of %i bytes, smaller than the message",
      async (initialWindowSize) => {
        const bytes = initialWindowSize === 1 ? 300 : tensorBytes;
        const sent = message({ do: "digest" }, bytes);
        const transport = await connect(await listen({ initialWindowSize }), [sent]);
        const outcomes = await Promise.all(Array.from({ length: 6 }, () => transport.infer(0, deadlineMs)));
        for (const outcome of outcomes) expectDigest(outcome, sent);
      },
    );

    it("stream windows larger than the connection's: the connection's window holds", async () => {
      const sent = message({ do: "digest" }, tensorBytes);
      const transport = await connect(await listen({ initialWindowSize: 8 << 20 }), [sent]);
      const outcomes = await Promise.all(Array.from({ length: 10 }, () => transport.infer(0, deadlineMs)));
      for (const outcome of outcomes) expectDigest(outcome, sent);
    });

    it("settings change in mid-stream: windows shrink, grow and frames change size while messages are under way", async () => {
      const sent = message({ do: "digest" }, tensorBytes);
      const server = await listen({ initialWindowSize: 200_000, maxFrameSize: 1 << 20 });
      const transport = await connect(server, [sent], 2);
      const pending = Array.from({ length: 30 }, () => transport.infer(0, deadlineMs));
      for (const initialWindowSize of [20_000, 1_000_000, 70_000, 16, 300_000]) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        for (const session of server.sessions) session.settings({ initialWindowSize, maxFrameSize: 16_384 });
      }
      for (const outcome of await Promise.all(pending)) expectDigest(outcome, sent);
      expect(server.sessionsSeen).toBe(2);
    });

    it.each([1, 3])("no more than %i concurrent streams a connection", async (maxConcurrentStreams) => {
      const sent = message({ do: "digest", delayMs: 2 }, 20_000);
      const server = await listen({ maxConcurrentStreams });
      const transport = await connect(server, [sent], 2);
      const outcomes = await Promise.all(Array.from({ length: 30 }, () => transport.infer(0, deadlineMs)));
      for (const outcome of outcomes) expectDigest(outcome, sent);
      expect(server.mostConcurrent).toBe(maxConcurrentStreams);
    });

    it("a stalled request does not hold the others up (grpc-node#2948)", async () => {
      const stalled = message({ do: "silence" }, tensorBytes);
      const fine = message({ do: "digest" });
      const server = await listen({ initialWindowSize: 8 << 20 });
      const transport = await connect(server, [stalled, fine]);
      for (const session of server.sessions) session.setLocalWindowSize(64 << 20);
      const silent = Array.from({ length: 30 }, () => transport.infer(0, 1500));
      await new Promise((resolve) => setTimeout(resolve, 100));
      for (let i = 0; i < 10; i++) expectDigest(await transport.infer(1, deadlineMs), fine);
      for (const outcome of await Promise.all(silent)) expect(outcome.status).toBe(Status.DEADLINE_EXCEEDED);
    });
  });

  describe(`${name}: deadlines, loss and recovery`, () => {
    it("a request without an answer ends at its deadline, the server is told, the connection goes on", async () => {
      const fine = message({ do: "digest" });
      const server = await listen();
      const transport = await connect(server, [message({ do: "silence" }), fine]);
      const startedMs = performance.now();
      const outcome = await transport.infer(0, 150);
      expect(outcome.status).toBe(Status.DEADLINE_EXCEEDED);
      expect(outcome.serviceTimeUs).toBeGreaterThanOrEqual(145_000);
      expect(performance.now() - startedMs).toBeLessThan(1500);
      expectDigest(await transport.infer(1, deadlineMs), fine);
      expect(server.resets).toEqual([constants.NGHTTP2_CANCEL]);
      expect(server.sessionsSeen).toBe(1);
    });

    it("a message that is stuck in a closed window ends at its deadline too", async () => {
      const server = await listen({ initialWindowSize: 0 });
      const transport = await connect(server, [message({ do: "digest" }, tensorBytes)]);
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => transport.infer(0, 150)));
      for (const outcome of outcomes) expect(outcome.status).toBe(Status.DEADLINE_EXCEEDED);
      expect(transport.inFlight).toBe(0);
    });

    it("GOAWAY: what is under way is answered, the next request goes over a new connection", async () => {
      const slow = message({ do: "digest", delayMs: 200 });
      const server = await listen();
      const transport = await connect(server, [slow]);
      const before = transport.infer(0, deadlineMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (const session of server.sessions) session.close();
      await new Promise((resolve) => setTimeout(resolve, 20));
      const after = untilOk(transport);
      expectDigest(await before, slow);
      expectDigest(await after, slow);
      expect(server.sessionsSeen).toBe(2);
    });

    it("a broken connection fails what is under way as UNAVAILABLE and is opened anew", async () => {
      const server = await listen();
      const fine = message({ do: "digest" });
      const transport = await connect(server, [fine, message({ do: "silence" })]);
      const pending = Array.from({ length: 5 }, () => transport.infer(1, deadlineMs));
      await new Promise((resolve) => setTimeout(resolve, 50));
      server.breakConnections();
      for (const outcome of await Promise.all(pending)) {
        expect(outcome.status).toBe(Status.UNAVAILABLE);
        expect(outcome.message).not.toBe("");
      }
      expectDigest(await untilOk(transport), fine);
    });

    it("survives a restart of the server on the same port; meanwhile requests fail fast", async () => {
      const server = await listen();
      const fine = message({ do: "digest" });
      const transport = await connect(server, [fine], 2);
      const { port } = server;
      await server.close();
      await new Promise((resolve) => setTimeout(resolve, 200));
      const startedMs = performance.now();
      expect((await transport.infer(0, deadlineMs)).status).toBe(Status.UNAVAILABLE);
      expect(performance.now() - startedMs).toBeLessThan(2500);
      await listen({}, port);
      expectDigest(await untilOk(transport), fine);
    });

    it("connect names an address where nobody listens", async () => {
      const server = await GrpcServer.listen();
      const { address } = server;
      await server.close();
      const transport = create({ address, payloads: [message({ do: "digest" })] });
      await expect(transport.connect()).rejects.toThrow(`cannot connect to ${address}`);
      await transport.close();
    });

    it("close ends what is in flight, and what comes later, as CANCELLED", async () => {
      const transport = await connect(await listen(), [message({ do: "silence" })]);
      const pending = Array.from({ length: 3 }, () => transport.infer(0, deadlineMs));
      await transport.close();
      for (const outcome of await Promise.all(pending)) expect(outcome.status).toBe(Status.CANCELLED);
      expect((await transport.infer(0, deadlineMs)).status).toBe(Status.CANCELLED);
      expect(transport.inFlight).toBe(0);
    });
  });
}
