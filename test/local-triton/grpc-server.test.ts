import * as http2 from "node:http2";
import { type AddressInfo, connect, createServer } from "node:net";
import { type ServiceError, status } from "@grpc/grpc-js";
import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  ErrorCode,
  Flag,
  frame,
  FrameType,
  PREFACE,
  SettingId,
  settingsPayload,
  uint32,
} from "../../http2/frames";
import { HeaderDecoder, type HeaderFields } from "../../http2/header-decoder";
import { literal } from "../../http2/literals";
import { readIntoOneBuffer } from "../../local-triton/h2/accept";
import { GrpcServer, type GrpcServerOptions, parseTimeoutMs } from "../../local-triton/grpc/server";
import { StatusError } from "../../local-triton/grpc/status";
import type { UnaryCall, UnaryHandler } from "../../local-triton/grpc/unary-call";
import { BarePeer, data, headers, prefixed, type ReceivedFrame, requestBlock } from "./http2-client";
import { eventually, rawCall, rawClient, sleep } from "./support";

const ECHO = "/test.Service/Echo";
const HOLD = "/test.Service/Hold";
const FAIL = "/test.Service/Fail";
const BREAK = "/test.Service/Break";
const BIG = "/test.Service/Big";

async function startGrpc(options: GrpcServerOptions = {}) {
  const held: UnaryCall[] = [];
  const methods = new Map<string, UnaryHandler>([
    [ECHO, (message, call) => call.respond(Buffer.from(message))],
    [HOLD, (_message, call) => void held.push(call)],
    [
      FAIL,
      () => {
        throw new StatusError(5, "not here: 100 %, größer\n");
      },
    ],
    [
      BREAK,
      () => {
        throw new TypeError("a bug");
      },
    ],
    [BIG, (message, call) => call.respond(Buffer.alloc(message.readUInt32LE(0), 7))],
  ]);
  const server = new GrpcServer(methods, options);
  const port = await server.listen(0, "127.0.0.1");
  onTestFinished(() => server.close());
  return { server, port, held, client: rawClient(`127.0.0.1:${port}`) };
}

function fieldsOf(received: ReceivedFrame): HeaderFields {
  return new HeaderDecoder(4096, (fields) => fields).decode(received.payload);
}

function big(bytes: number): Buffer {
  const message = Buffer.alloc(4);
  message.writeUInt32LE(bytes);
  return message;
}

describe("gRPC server with grpc-js", () => {
  it("echoes messages of all sizes", async () => {
    const { client } = await startGrpc();
    for (const bytes of [0, 1, 5, 16_379, 16_384, 65_535, 65_536, 602_112, 9_000_000]) {
      const message = Buffer.alloc(bytes, bytes % 251);
      const { code, reply } = await rawCall(client, ECHO, message);
      expect(code, `${bytes} bytes`).toBe("OK");
      expect(reply!.equals(message), `${bytes} bytes`).toBe(true);
    }
  });

  it("keeps concurrent calls apart", async () => {
    const { client, server } = await startGrpc();
    const messages = Array.from({ length: 60 }, (_unused, i) => Buffer.alloc(70_000 + i * 1000, i));
    const answers = await Promise.all(messages.map((message) => rawCall(client, ECHO, message)));
    answers.forEach((answer, i) => expect(answer.reply!.equals(messages[i]!)).toBe(true));
    expect(server.inFlight).toBe(0);
  });

  it("carries status and message, and survives a handler's bug", async () => {
    const { client } = await startGrpc();
    expect(await rawCall(client, FAIL, Buffer.alloc(3))).toMatchObject({
      code: "NOT_FOUND",
      message: "not here: 100 %, größer\n",
    });
    expect(await rawCall(client, BREAK, Buffer.alloc(3))).toMatchObject({
      code: "INTERNAL",
      message: "unexpected error in the server: TypeError: a bug",
    });
    expect(await rawCall(client, "/test.Service/Nope", Buffer.alloc(3))).toMatchObject({
      code: "UNIMPLEMENTED",
      message: "The server does not offer the method /test.Service/Nope.",
    });
  });

  it("refuses a message over the limit, before it is all there", async () => {
    const { client } = await startGrpc({ maxMessageBytes: 1000 });
    expect(await rawCall(client, ECHO, Buffer.alloc(1000))).toMatchObject({ code: "OK" });
    expect(await rawCall(client, ECHO, Buffer.alloc(3_000_000))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: "Received message larger than max (3000000 vs. 1000)",
    });
    expect(await rawCall(client, ECHO, Buffer.alloc(10))).toMatchObject({ code: "OK" });
  });

  it("tells the handler when the client cancels or is gone", async () => {
    const { client, held, server, port } = await startGrpc();
    const cancelled = vi.fn();
    const same = (bytes: Buffer): Buffer => bytes;
    const failed = new Promise<ServiceError | null>((resolve) => {
      const call = client.makeUnaryRequest(HOLD, same, same, Buffer.alloc(1), (error) => resolve(error));
      void vi
        .waitFor(() => expect(held).toHaveLength(1))
        .then(() => {
          held[0]!.onCancelled = cancelled;
          call.cancel();
        });
    });
    expect((await failed)!.code).toBe(status.CANCELLED);
    await eventually(() => expect(cancelled).toHaveBeenCalledTimes(1));
    expect(server.inFlight).toBe(0);
    held[0]!.respond(Buffer.alloc(1));

    const gone = vi.fn();
    const peer = await BarePeer.connect(port);
    peer.send(
      Buffer.concat([headers(1, requestBlock(HOLD)), data(1, prefixed(Buffer.alloc(1)), Flag.END_STREAM)]),
    );
    await eventually(() => expect(held).toHaveLength(2));
    held[1]!.onCancelled = gone;
    peer.destroy();
    await eventually(() => expect(gone).toHaveBeenCalledTimes(1));
    expect(server.inFlight).toBe(0);
  });

  it("drains: open calls are answered, new ones are not taken", async () => {
    const { client, held, server, port } = await startGrpc();
    const inside = rawCall(client, HOLD, Buffer.alloc(1));
    await eventually(() => expect(held).toHaveLength(1));
    const peer = await BarePeer.connect(port);
    await peer.next(FrameType.SETTINGS, (received) => (received.flags & Flag.ACK) !== 0);
    const drained = server.drain();
    expect(await peer.goAway()).toBe(ErrorCode.NO_ERROR);
    await sleep(20);
    held[0]!.respond(Buffer.from("late"));
    expect((await inside).reply!.toString()).toBe("late");
    await drained;
    expect((await rawCall(client, ECHO, Buffer.alloc(1), 500)).code).toMatch(/UNAVAILABLE|DEADLINE_EXCEEDED/);
  });
});

describe("gRPC server with node:http2", () => {
  async function session(port: number): Promise<http2.ClientHttp2Session> {
    const opened = http2.connect(`http://127.0.0.1:${port}`);
    onTestFinished(() => opened.destroy());
    await new Promise((resolve) => opened.once("remoteSettings", resolve));
    return opened;
  }

  function post(opened: http2.ClientHttp2Session, extra: http2.OutgoingHttpHeaders, body: Buffer) {
    const stream = opened.request({
      ":method": "POST",
      ":path": ECHO,
      "content-type": "application/grpc",
      te: "trailers",
      ...extra,
    });
    const seen: {
      headers?: http2.IncomingHttpHeaders;
      trailers?: http2.IncomingHttpHeaders;
      body: Buffer[];
    } = {
      body: [],
    };
    stream.on("response", (received) => (seen.headers = received));
    stream.on("trailers", (received: http2.IncomingHttpHeaders) => (seen.trailers = received));
    stream.on("data", (chunk: Buffer) => seen.body.push(chunk));
    stream.end(body);
    return new Promise<typeof seen>((resolve, reject) => {
      stream.on("end", () => resolve(seen)).on("error", reject);
    });
  }

  it("announces its windows", async () => {
    const opened = await session((await startGrpc()).port);
    expect(opened.remoteSettings).toMatchObject({ initialWindowSize: 4_194_304, maxFrameSize: 1_048_576 });
    await eventually(() => expect(opened.state.remoteWindowSize).toBe(67_108_864));
  });

  it("answers with headers, message and trailers", async () => {
    const opened = await session((await startGrpc()).port);
    const message = Buffer.alloc(300_000, 3);
    const { headers: head, trailers, body } = await post(opened, {}, prefixed(message));
    expect(head).toMatchObject({ ":status": 200, "content-type": "application/grpc" });
    expect(trailers).toMatchObject({ "grpc-status": "0" });
    expect(Buffer.concat(body).equals(prefixed(message))).toBe(true);
  });

  it("answers what is no gRPC by HTTP status", async () => {
    const opened = await session((await startGrpc()).port);
    const html = await post(opened, { "content-type": "text/html" }, Buffer.alloc(3));
    expect(html.headers).toMatchObject({ ":status": 415 });
    const get = opened.request({ ":path": ECHO });
    const head = await new Promise<http2.IncomingHttpHeaders>((resolve) => get.once("response", resolve));
    expect(head[":status"]).toBe(405);
    get.close();
  });

  it("expires a call by its grpc-timeout", async () => {
    const { port, held } = await startGrpc();
    const opened = await session(port);
    const { headers: head } = await post(
      opened,
      { ":path": HOLD, "grpc-timeout": "50m" },
      prefixed(Buffer.alloc(1)),
    );
    expect(head).toMatchObject({ "grpc-status": "4", "grpc-message": "Deadline Exceeded" });
    expect(held[0]!.over).toBe(true);
    const bad = await post(opened, { "grpc-timeout": "soon" }, prefixed(Buffer.alloc(1)));
    expect(bad.headers).toMatchObject({ "grpc-status": "13" });
  });

  it("refuses compressed, missing, short and second messages", async () => {
    const opened = await session((await startGrpc()).port);
    const code = async (body: Buffer): Promise<string | undefined> =>
      (await post(opened, {}, body)).headers!["grpc-status"] as string | undefined;
    expect(await code(prefixed(Buffer.alloc(3), 1))).toBe("12");
    expect(await code(Buffer.alloc(0))).toBe("13");
    expect(await code(prefixed(Buffer.alloc(30)).subarray(0, 20))).toBe("13");
    expect(await code(Buffer.concat([prefixed(Buffer.alloc(3)), prefixed(Buffer.alloc(3))]))).toBe("12");
  });
});

describe("grpc-timeout", () => {
  it("is read in all units, rounded up to milliseconds", () => {
    const cases = {
      "1H": 3_600_000,
      "2M": 120_000,
      "3S": 3000,
      "40m": 40,
      "1500u": 2,
      "1n": 1,
      "99999999H": 0x7fffffff,
    };
    for (const [text, ms] of Object.entries(cases)) expect(parseTimeoutMs(text), text).toBe(ms);
    for (const text of ["", "5", "S", "123456789m", "-1S", "1.5S", "1s"])
      expect(parseTimeoutMs(text), text).toBeNaN();
  });
});

describe("HTTP/2 as the protocol asks", () => {
  it("acknowledges SETTINGS and PING", async () => {
    const peer = await BarePeer.connect((await startGrpc()).port);
    await peer.next(FrameType.SETTINGS, (received) => (received.flags & Flag.ACK) !== 0);
    peer.send(frame(FrameType.PING, 0, 0, Buffer.from("8 bytes!")));
    const ping = await peer.next(FrameType.PING);
    expect(ping.flags & Flag.ACK).toBe(1);
    expect(ping.payload.toString()).toBe("8 bytes!");
  });

  it("joins CONTINUATION, takes padding off, passes over unknown frames and PRIORITY", async () => {
    const peer = await BarePeer.connect((await startGrpc()).port);
    const block = requestBlock(ECHO);
    const padded = Buffer.concat([Buffer.from([7]), block.subarray(0, 20), Buffer.alloc(7)]);
    peer.send(
      Buffer.concat([
        frame(FrameType.HEADERS, Flag.PADDED, 1, padded),
        frame(FrameType.CONTINUATION, 0, 1, block.subarray(20, 21)),
        frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(0)),
        frame(FrameType.CONTINUATION, Flag.END_HEADERS, 1, block.subarray(21)),
        frame(0x77, 0xff, 1, Buffer.alloc(100)),
        frame(FrameType.PRIORITY, 0, 3, Buffer.alloc(5)),
        data(
          1,
          Buffer.concat([Buffer.from([4]), prefixed(Buffer.from("hello")).subarray(0, 7), Buffer.alloc(4)]),
          Flag.PADDED,
        ),
        data(1, Buffer.alloc(0)),
        data(
          1,
          Buffer.concat([Buffer.from([0]), prefixed(Buffer.from("hello")).subarray(7)]),
          Flag.PADDED | Flag.END_STREAM,
        ),
      ]),
    );
    await peer.next(FrameType.HEADERS, (received) => (received.flags & Flag.END_STREAM) !== 0);
    expect(peer.dataOf(1).subarray(5).toString()).toBe("hello");
  });

  it("is indifferent to how the bytes are cut", async () => {
    const { port } = await startGrpc();
    const message = Buffer.from("cut anywhere");
    const bytes = Buffer.concat([
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(0)),
      headers(1, requestBlock(ECHO)),
      data(1, prefixed(message), Flag.END_STREAM),
    ]);
    for (const size of [1, 7, 64]) {
      const peer = await BarePeer.connect(port, Buffer.alloc(0));
      for (let at = 0; at < bytes.length; at += size) {
        peer.send(bytes.subarray(at, at + size));
        await new Promise((resolve) => setImmediate(resolve));
      }
      await peer.next(FrameType.HEADERS, (received) => (received.flags & Flag.END_STREAM) !== 0);
      expect(peer.dataOf(1).subarray(5).toString()).toBe("cut anywhere");
    }
  });

  it("keeps to the client's windows, and goes on when they grow", async () => {
    const { port } = await startGrpc();
    const first = Buffer.concat([
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 1000]])),
    ]);
    const peer = await BarePeer.connect(port, first);
    peer.send(
      Buffer.concat([headers(1, requestBlock(BIG)), data(1, prefixed(big(200_000)), Flag.END_STREAM)]),
    );
    await peer.next(FrameType.DATA);
    await sleep(30);
    expect(peer.dataOf(1).length).toBe(1000);
    // The stream's window by a setting, which applies to open streams; then the connection's is the limit.
    peer.send(frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 500_000]])));
    await eventually(() => expect(peer.dataOf(1).length).toBe(65_535));
    peer.send(frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(500_000)));
    const trailers = await peer.next(
      FrameType.HEADERS,
      (received) => (received.flags & Flag.END_STREAM) !== 0,
    );
    expect(fieldsOf(trailers).get("grpc-status")).toBe("0");
    expect(peer.dataOf(1).length).toBe(200_005);
    const frames = peer.frames.filter((received) => received.type === FrameType.DATA);
    expect(Math.max(...frames.map((received) => received.payload.length))).toBeLessThanOrEqual(16_384);
  });

  it("refills its windows, so that any amount can be sent", async () => {
    const { client } = await startGrpc({
      connection: { streamWindowBytes: 70_000, connectionWindowBytes: 100_000 },
    });
    const message = Buffer.alloc(3_000_000, 9);
    const { reply } = await rawCall(client, ECHO, message);
    expect(reply!.equals(message)).toBe(true);
  });

  it("decodes headers by the dynamic table, and forgets what it remembered when the table changes", async () => {
    const { port } = await startGrpc();
    const peer = await BarePeer.connect(port);
    const indexed = (name: string, value: string): Buffer => {
      const plain = literal(name, value);
      plain[0] = 0x40;
      return plain;
    };
    const fixed = [
      literal(":method", "POST"),
      literal(":scheme", "http"),
      literal("content-type", "application/grpc"),
    ];
    const first = Buffer.concat([...fixed, indexed(":path", ECHO)]);
    const repeated = Buffer.concat([...fixed, Buffer.from([0x80 | 62])]);
    const other = Buffer.concat([...fixed, indexed(":path", FAIL)]);
    const call = async (streamId: number, block: Buffer): Promise<string | undefined> => {
      peer.send(
        Buffer.concat([
          headers(streamId, block),
          data(streamId, prefixed(Buffer.from("x")), Flag.END_STREAM),
        ]),
      );
      const last = await peer.next(
        FrameType.HEADERS,
        (received) => received.streamId === streamId && (received.flags & Flag.END_STREAM) !== 0,
      );
      return fieldsOf(last).get("grpc-status");
    };
    expect(await call(1, first)).toBe("0");
    expect(await call(3, repeated)).toBe("0");
    expect(await call(5, repeated)).toBe("0");
    expect(await call(7, other)).toBe("5");
    // The same octets now mean the other path.
    expect(await call(9, repeated)).toBe("5");
  });

  it("resets what the client resets, and frees it", async () => {
    const { port, server } = await startGrpc();
    const peer = await BarePeer.connect(port);
    peer.send(
      Buffer.concat([
        headers(1, requestBlock(ECHO)),
        data(1, prefixed(Buffer.alloc(600_000)).subarray(0, 9000)),
      ]),
    );
    await eventually(() => expect(server.inFlight).toBe(1));
    peer.send(frame(FrameType.RST_STREAM, 0, 1, uint32(ErrorCode.CANCEL)));
    await eventually(() => expect(server.inFlight).toBe(0));
    // What was under way when the client reset is passed over, also trailers.
    peer.send(
      Buffer.concat([
        data(1, Buffer.alloc(100)),
        headers(1, literal("x", "y"), Flag.END_HEADERS | Flag.END_STREAM),
      ]),
    );
    peer.send(
      Buffer.concat([headers(3, requestBlock(ECHO)), data(3, prefixed(Buffer.from("on")), Flag.END_STREAM)]),
    );
    await peer.next(
      FrameType.HEADERS,
      (received) => received.streamId === 3 && (received.flags & Flag.END_STREAM) !== 0,
    );
  });
});

describe("accepted sockets", () => {
  it("read into one buffer on this version of Node", async () => {
    const server = createServer({ pauseOnConnect: true });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const chunks: string[] = [];
    const buffers = new Set<ArrayBufferLike>();
    const moved = new Promise<boolean>((resolve) =>
      server.once("connection", (accepted) => {
        const socket = readIntoOneBuffer(accepted, (chunk) => {
          chunks.push(chunk.toString());
          buffers.add(chunk.buffer);
          socket.write("ok");
        });
        socket.on("end", () => socket.end());
        resolve(socket !== accepted);
      }),
    );
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const answered = (): Promise<unknown> => new Promise((resolve) => client.once("data", resolve));
    for (const text of ["first", "second"]) {
      client.write(text);
      await answered();
    }
    expect(await moved).toBe(true);
    expect(chunks).toEqual(["first", "second"]);
    expect(buffers.size).toBe(1);
    const closed = new Promise((resolve) => server.close(resolve));
    client.end();
    await closed;
  });
});

describe("what clients must not do", () => {
  const block = requestBlock(ECHO);

  const OFFENCES: Readonly<Record<string, readonly [bytes: Buffer, code: number]>> = {
    "DATA on a stream never opened": [data(5, Buffer.alloc(3)), ErrorCode.PROTOCOL_ERROR],
    "RST_STREAM on a stream never opened": [
      frame(FrameType.RST_STREAM, 0, 5, uint32(8)),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "WINDOW_UPDATE on a stream never opened": [
      frame(FrameType.WINDOW_UPDATE, 0, 5, uint32(8)),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "DATA on stream 0": [data(0, Buffer.alloc(3)), ErrorCode.PROTOCOL_ERROR],
    "a server's stream number": [headers(2, block), ErrorCode.PROTOCOL_ERROR],
    "HEADERS on stream 0": [headers(0, block), ErrorCode.PROTOCOL_ERROR],
    "an empty connection window update": [
      frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(0)),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "a window over 2^31-1": [
      frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(0x7fffffff)),
      ErrorCode.FLOW_CONTROL_ERROR,
    ],
    "an initial window over 2^31-1": [
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 0x80000000]])),
      ErrorCode.FLOW_CONTROL_ERROR,
    ],
    "a maximum frame size below 16384": [
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.MAX_FRAME_SIZE, 100]])),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "ENABLE_PUSH of 2": [
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.ENABLE_PUSH, 2]])),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "SETTINGS of 5 bytes": [frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(5)), ErrorCode.FRAME_SIZE_ERROR],
    "SETTINGS on a stream": [frame(FrameType.SETTINGS, 0, 1, Buffer.alloc(0)), ErrorCode.PROTOCOL_ERROR],
    "a PING of 7 bytes": [frame(FrameType.PING, 0, 0, Buffer.alloc(7)), ErrorCode.FRAME_SIZE_ERROR],
    "PRIORITY of 4 bytes": [frame(FrameType.PRIORITY, 0, 1, Buffer.alloc(4)), ErrorCode.FRAME_SIZE_ERROR],
    "a short GOAWAY": [frame(FrameType.GOAWAY, 0, 0, Buffer.alloc(4)), ErrorCode.FRAME_SIZE_ERROR],
    PUSH_PROMISE: [
      frame(FrameType.PUSH_PROMISE, Flag.END_HEADERS, 1, Buffer.alloc(8)),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "CONTINUATION without HEADERS": [frame(FrameType.CONTINUATION, 0, 1, block), ErrorCode.PROTOCOL_ERROR],
    "another frame inside a header block": [
      Buffer.concat([headers(1, block, 0), frame(FrameType.PING, 0, 0, Buffer.alloc(8))]),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "CONTINUATION of another stream": [
      Buffer.concat([headers(1, block, 0), frame(FrameType.CONTINUATION, Flag.END_HEADERS, 3, block)]),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "a header block that cannot be decoded": [
      headers(1, Buffer.from([0xff, 0xff, 0xff])),
      ErrorCode.COMPRESSION_ERROR,
    ],
    "an index that is not in the table": [headers(1, Buffer.from([0x80 | 100])), ErrorCode.COMPRESSION_ERROR],
    "a frame over the maximum size": [
      Buffer.concat([Buffer.from([0x20, 0, 0, FrameType.DATA, 0, 0, 0, 0, 1])]),
      ErrorCode.FRAME_SIZE_ERROR,
    ],
    "a control frame of a megabyte": [
      Buffer.concat([Buffer.from([0x0f, 0, 0, FrameType.HEADERS, 0, 0, 0, 0, 1])]),
      ErrorCode.ENHANCE_YOUR_CALM,
    ],
    "more padding than payload": [
      Buffer.concat([headers(1, block), data(1, Buffer.from([200, 0, 0]), Flag.PADDED)]),
      ErrorCode.PROTOCOL_ERROR,
    ],
    "headers that unpack to megabytes": [
      Buffer.concat([
        headers(
          1,
          Buffer.concat([
            Buffer.from([0x40]),
            literal("x".repeat(30), "y".repeat(3000)).subarray(1),
            Buffer.alloc(10_000, 0x80 | 62),
          ]),
        ),
      ]),
      ErrorCode.ENHANCE_YOUR_CALM,
    ],
  };

  for (const [name, [bytes, code]] of Object.entries(OFFENCES)) {
    it(`${name} ends the connection`, async () => {
      const { port, client } = await startGrpc();
      const peer = await BarePeer.connect(port);
      peer.send(bytes);
      expect(await peer.goAway()).toBe(code);
      await eventually(() => expect(peer.closed).toBe(true));
      expect((await rawCall(client, ECHO, Buffer.from("still there"))).code).toBe("OK");
    });
  }

  it("a wrong preface, or another frame before SETTINGS, ends the connection", async () => {
    const { port } = await startGrpc();
    const http1 = await BarePeer.connect(port, Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    expect(await http1.goAway()).toBe(ErrorCode.PROTOCOL_ERROR);
    const early = await BarePeer.connect(port, Buffer.concat([PREFACE, headers(1, block)]));
    expect(await early.goAway()).toBe(ErrorCode.PROTOCOL_ERROR);
  });

  it("overrunning the connection's window ends it; overrunning a stream's resets the stream", async () => {
    const { port, server } = await startGrpc({
      connection: { streamWindowBytes: 100, connectionWindowBytes: 70_000 },
    });
    const peer = await BarePeer.connect(port);
    peer.send(Buffer.concat([headers(1, block), data(1, Buffer.alloc(101))]));
    expect(await peer.reset(1)).toBe(ErrorCode.FLOW_CONTROL_ERROR);
    await eventually(() => expect(server.inFlight).toBe(0));
    // Frames up to the limit are answered by refills; one over what is left is not.
    peer.send(data(1, Buffer.alloc(70_000)));
    expect(await peer.goAway()).toBe(ErrorCode.FLOW_CONTROL_ERROR);
  });

  it("an empty or too large update of a stream's window resets the stream", async () => {
    const { port } = await startGrpc();
    const peer = await BarePeer.connect(port);
    for (const [streamId, increment, code] of [
      [1, 0, ErrorCode.PROTOCOL_ERROR],
      [3, 0x7fffffff, ErrorCode.FLOW_CONTROL_ERROR],
    ] as const) {
      peer.send(
        Buffer.concat([
          headers(streamId, block),
          frame(FrameType.WINDOW_UPDATE, 0, streamId, uint32(increment)),
        ]),
      );
      expect(await peer.reset(streamId)).toBe(code);
    }
  });

  it("DATA behind END_STREAM, malformed requests and too many streams reset the stream", async () => {
    const { port } = await startGrpc({ connection: { maxConcurrentStreams: 2 } });
    const peer = await BarePeer.connect(port);
    peer.send(
      Buffer.concat([
        headers(1, requestBlock(HOLD)),
        data(1, prefixed(Buffer.alloc(1)), Flag.END_STREAM),
        data(1, Buffer.alloc(3)),
      ]),
    );
    expect(await peer.reset(1)).toBe(ErrorCode.STREAM_CLOSED);
    peer.send(headers(3, Buffer.concat([block, literal("Upper", "case")])));
    expect(await peer.reset(3)).toBe(ErrorCode.PROTOCOL_ERROR);
    peer.send(headers(5, literal(":method", "POST")));
    expect(await peer.reset(5)).toBe(ErrorCode.PROTOCOL_ERROR);
    peer.send(Buffer.concat([headers(7, block), headers(9, block), headers(11, block)]));
    expect(await peer.reset(11)).toBe(ErrorCode.REFUSED_STREAM);
  });

  it("a client that asks for much and reads nothing is cut off", async () => {
    const { port, server, held } = await startGrpc();
    const peer = await BarePeer.connect(port);
    peer.pause();
    peer.send(
      Buffer.concat([
        frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 0x7fffffff]])),
        frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(0x7fff0000)),
        headers(1, requestBlock(HOLD)),
        data(1, prefixed(Buffer.alloc(1)), Flag.END_STREAM),
        headers(3, requestBlock(BIG)),
        data(3, prefixed(big(100_000_000)), Flag.END_STREAM),
      ]),
    );
    // The held call ends with the connection.
    await eventually(() => expect(held).toHaveLength(1));
    await eventually(() => expect(held[0]!.over).toBe(true));
    expect(server.inFlight).toBe(0);
  });

  it("survives any bytes", async () => {
    const { port, client, server } = await startGrpc();
    const valid = Buffer.concat([
      headers(1, block),
      data(1, prefixed(Buffer.from("hello")), Flag.END_STREAM),
      frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(1000)),
      headers(3, block, 0),
      frame(FrameType.CONTINUATION, Flag.END_HEADERS, 3, Buffer.alloc(0)),
      data(3, prefixed(Buffer.alloc(200)).subarray(0, 50)),
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 10]])),
      frame(FrameType.PRIORITY, 0, 3, Buffer.alloc(5)),
    ]);
    const mutated = fc
      .array(fc.record({ at: fc.nat(valid.length - 1), value: fc.nat(255) }), { minLength: 1, maxLength: 8 })
      .map((changes) => {
        const bytes = Buffer.from(valid);
        for (const { at, value } of changes) bytes[at] = value;
        return bytes;
      });
    const anyFrame = fc
      .record({
        type: fc.nat(11),
        flags: fc.nat(255),
        streamId: fc.nat(9),
        payload: fc.uint8Array({ maxLength: 60 }),
      })
      .map(({ type, flags, streamId, payload }) => frame(type, flags, streamId, payload));
    const anyFrames = fc.array(anyFrame, { maxLength: 12 }).map((frames) => Buffer.concat(frames));
    const noise = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
    await fc.assert(
      fc.asyncProperty(fc.oneof(mutated, anyFrames, noise), async (bytes) => {
        const peer = await BarePeer.connect(port);
        peer.send(bytes);
        await sleep(2);
        peer.destroy();
      }),
      { numRuns: 250 },
    );
    expect((await rawCall(client, ECHO, Buffer.from("still there"))).reply!.toString()).toBe("still there");
    await eventually(() => expect(server.inFlight).toBe(0));
  });
});
