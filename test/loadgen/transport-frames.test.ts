/** Lawful but unusual frames, for both transports; broken frames, for the lean one. */
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ErrorCode, Flag, frame, FrameType, SettingId, settingsPayload, uint32 } from "../../http2/frames";
import { literal } from "../../http2/literals";
import { GrpcStatusCode as Status } from "../../kserve/status";
import type { InferOutcome, Transport } from "../../loadgen/transport";
import { createTransport } from "../../loadgen/create-transport";
import { okHead, okTrailers, prefixed, RawServer, type RawConnection } from "./support/raw-server";

const deadlineMs = 3000;
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

type Kind = "lean" | "grpc-js";

async function connect(
  kind: Kind,
  script: (connection: RawConnection, n: number) => void,
  connections = 1,
): Promise<{ transport: Transport; server: RawServer }> {
  const server = await RawServer.listen(script);
  closing.push(server);
  const payloads = [Buffer.alloc(1000), Buffer.alloc(600_000)];
  const transport = createTransport(kind, { address: server.address, payloads, connections });
  closing.push(transport);
  await transport.connect();
  return { transport, server };
}

/** One request, answered by `answer` on a greeting server. */
async function exchange(
  kind: Kind,
  answer: (connection: RawConnection, streamId: number) => void,
): Promise<InferOutcome> {
  const { transport } = await connect(kind, (connection) => {
    connection.onRequest = (streamId) => answer(connection, streamId);
    connection.greet();
  });
  return transport.infer(0, deadlineMs);
}

const fine = { status: Status.OK, reply: Buffer.from("fine") };
const { END_HEADERS, END_STREAM, PADDED, PRIORITY } = Flag;

describe.each<Kind>(["lean", "grpc-js"])("%s takes lawful frames", (kind) => {
  it("padding, priority and header blocks in pieces", async () => {
    const outcome = await exchange(kind, (connection, id) => {
      const padded = Buffer.concat([
        Buffer.from([3]),
        Buffer.alloc(4),
        Buffer.from([16]),
        okHead.subarray(0, 5),
        Buffer.alloc(3),
      ]);
      connection.send(FrameType.HEADERS, PADDED | PRIORITY, id, padded);
      connection.send(FrameType.CONTINUATION, 0, id);
      connection.send(FrameType.CONTINUATION, 0, id, okHead.subarray(5, 6));
      connection.send(FrameType.CONTINUATION, 0, id, okHead.subarray(6, -1));
      connection.send(FrameType.CONTINUATION, END_HEADERS, id, okHead.subarray(-1));
      const content = Buffer.concat([Buffer.from([200]), prefixed(Buffer.from("fine")), Buffer.alloc(200)]);
      connection.send(FrameType.DATA, PADDED, id, content);
      connection.send(FrameType.DATA, 0, id);
      connection.send(FrameType.HEADERS, END_HEADERS | END_STREAM, id, okTrailers);
    });
    expect(outcome).toMatchObject(fine);
  });

  it("informational headers first, frames of unknown type, PING, PRIORITY and SETTINGS in between", async () => {
    const pings: Buffer[] = [];
    const outcome = await exchange(kind, (connection, id) => {
      connection.onFrame = (type, flags, _, payload) => {
        if (type === FrameType.PING && (flags & Flag.ACK) !== 0) pings.push(Buffer.from(payload));
      };
      connection.send(FrameType.HEADERS, END_HEADERS, id, literal(":status", "103"));
      connection.send(0xfa, 0xff, id, Buffer.from("what is this"));
      connection.send(FrameType.HEADERS, END_HEADERS, id, okHead);
      connection.send(FrameType.PING, 0, 0, Buffer.from("12345678"));
      connection.send(FrameType.PRIORITY, 0, id, Buffer.from([0, 0, 0, 0, 9]));
      connection.send(
        FrameType.SETTINGS,
        0,
        0,
        settingsPayload([
          [0x99, 1],
          [SettingId.MAX_CONCURRENT_STREAMS, 7],
        ]),
      );
      connection.send(FrameType.DATA, 0, id, prefixed(Buffer.from("fine")));
      connection.send(FrameType.HEADERS, END_HEADERS | END_STREAM, id, okTrailers);
    });
    expect(outcome).toMatchObject(fine);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(pings.map(String)).toContain("12345678");
  });

  it("a whole reply cut into single bytes on the wire", async () => {
    const outcome = await exchange(kind, (connection, id) => {
      const bytes = Buffer.concat([
        frame(FrameType.HEADERS, END_HEADERS, id, okHead),
        frame(FrameType.DATA, 0, id, prefixed(Buffer.from("fine"))),
        frame(FrameType.HEADERS, END_HEADERS | END_STREAM, id, okTrailers),
      ]);
      connection.socket.setNoDelay(true);
      let at = 0;
      const next = (): void => {
        if (at === bytes.length || connection.socket.destroyed) return;
        connection.socket.write(bytes.subarray(at, ++at));
        setImmediate(next);
      };
      next();
    });
    expect(outcome).toMatchObject(fine);
  });

  it("GOAWAY that says a request was not looked at: it is sent again or fails as UNAVAILABLE", async () => {
    const { transport, server } = await connect(kind, (connection, n) => {
      if (n === 0)
        connection.onRequest = () => {
          if (connection.requests.length < 3) return;
          connection.goAway(1, ErrorCode.NO_ERROR);
          connection.reply(1);
        };
      connection.greet();
    });
    const outcomes = await Promise.all([0, 0, 0].map((index) => transport.infer(index, deadlineMs)));
    expect(outcomes[0]).toMatchObject(fine);
    for (const outcome of outcomes.slice(1)) {
      if (kind === "lean") expect(outcome).toMatchObject(fine);
      else expect([Status.OK, Status.UNAVAILABLE]).toContain(outcome.status);
    }
    expect(await transport.infer(0, deadlineMs)).toMatchObject(fine);
    expect(server.connections.length).toBe(2);
  });
});

describe.each<Kind>(["lean", "grpc-js"])("%s follows a server that changes its mind", (kind) => {
  const limited = (connection: RawConnection, streams: number): void =>
    connection.send(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.MAX_CONCURRENT_STREAMS, streams]]));

  it("GOAWAY in two steps, as gRPC servers drain: what came before the second is answered, what comes after the first goes elsewhere", async () => {
    const { transport, server } = await connect(kind, (connection, n) => {
      if (n === 0)
        connection.onRequest = (id) => {
          connection.goAway(0x7fffffff, ErrorCode.NO_ERROR, "graceful_stop");
          connection.send(FrameType.PING, 0, 0, Buffer.alloc(8, 1));
          setTimeout(() => {
            connection.goAway(id, ErrorCode.NO_ERROR);
            connection.reply(id);
          }, 300);
        };
      connection.greet();
    });
    const first = transport.infer(1, deadlineMs);
    while (server.connections[0]!.requests.length === 0)
      await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const second = transport.infer(0, deadlineMs);
    expect(await Promise.all([first, second])).toEqual([
      expect.objectContaining(fine),
      expect.objectContaining(fine),
    ]);
    expect(server.connections.map(({ requests }) => requests.length)).toEqual([1, 1]);
  });

  it("a limit of 0 streams holds requests back until it is lifted", async () => {
    const { transport, server } = await connect(kind, (connection) => connection.greet());
    const [connection] = server.connections;
    // The answer to a PING behind the settings says that they are known.
    const mark = Buffer.alloc(8, 9);
    const known = new Promise<void>((resolve) => {
      connection!.onFrame = (type, flags, _, payload) => {
        if (type === FrameType.PING && (flags & Flag.ACK) !== 0 && payload.equals(mark)) resolve();
      };
    });
    limited(connection!, 0);
    connection!.send(FrameType.PING, 0, 0, mark);
    await known;
    const pending = [0, 1, 0].map((index) => transport.infer(index, deadlineMs));
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(connection!.requests).toEqual([]);
    limited(connection!, 2);
    for (const outcome of await Promise.all(pending)) expect(outcome).toMatchObject(fine);
  });

  it("a limit below what is under way cuts nothing off, and lets nothing new through until it holds", async () => {
    let open = 0;
    let mostAfterwards = 0;
    let isLimited = false;
    const { transport, server } = await connect(kind, (connection) => {
      connection.onRequest = () => {
        open++;
        if (isLimited) mostAfterwards = Math.max(mostAfterwards, open);
        if (isLimited || open < 4) return;
        isLimited = true;
        limited(connection, 2);
      };
      connection.greet();
    });
    const [connection] = server.connections;
    const pending = Array.from({ length: 4 }, () => transport.infer(0, deadlineMs));
    while (!isLimited) await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 100));
    pending.push(...Array.from({ length: 4 }, () => transport.infer(0, deadlineMs)));
    for (let answered = 0; answered < 8; answered++) {
      await new Promise((resolve) => setTimeout(resolve, 40));
      open--;
      connection!.reply(connection!.requests[answered]!);
    }
    for (const outcome of await Promise.all(pending)) expect(outcome).toMatchObject(fine);
    expect(mostAfterwards).toBeLessThanOrEqual(2);
    expect(connection!.requests.length).toBe(8);
  });
});

describe("lean: GOAWAY", () => {
  it("sends a request again once only", async () => {
    const { transport, server } = await connect("lean", (connection) => {
      connection.onRequest = () => connection.goAway(0, ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings");
      connection.greet();
    });
    const outcome = await transport.infer(0, deadlineMs);
    expect(outcome.status).toBe(Status.UNAVAILABLE);
    expect(outcome.message).toContain('GOAWAY ENHANCE_YOUR_CALM "too_many_pings" again');
    expect(server.connections.flatMap(({ requests }) => requests)).toEqual([1, 1]);
  });

  it("a server that says it at every greeting is not hammered", async () => {
    const { transport, server } = await connect("lean", (connection, n) => {
      connection.greet();
      if (n > 0) connection.goAway(0, ErrorCode.NO_ERROR);
    });
    server.connections[0]!.goAway(0, ErrorCode.NO_ERROR);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(server.connections.length).toBeLessThan(8);
    expect((await transport.infer(0, 100)).status).not.toBe(Status.OK);
  });

  it("requests that wait for a free stream move to the new connection", async () => {
    const { transport, server } = await connect("lean", (connection, n) => {
      const limit = settingsPayload([[SettingId.MAX_CONCURRENT_STREAMS, 1]]);
      connection.greet();
      if (n > 0) return;
      connection.send(FrameType.SETTINGS, 0, 0, limit);
      connection.onRequest = (id) => {
        connection.goAway(id, ErrorCode.NO_ERROR);
        setTimeout(() => connection.reply(id), 30);
      };
    });
    const outcomes = await Promise.all([0, 1, 0, 1].map((index) => transport.infer(index, deadlineMs)));
    for (const outcome of outcomes) expect(outcome).toMatchObject(fine);
    expect(server.connections.map(({ requests }) => requests.length)).toEqual([1, 3]);
  });
});

/** Things that end the connection: the request under way is UNAVAILABLE, the next one goes over a new connection. */
const brokenConnections: Record<string, (connection: RawConnection, id: number) => void> = {
  "bytes that are no frames": (c) => c.socket.write(Buffer.alloc(5000, 0xff)),
  "an HTTP/1.1 answer": (c) => c.socket.write("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
  "a frame over MAX_FRAME_SIZE": (c, id) => c.send(FrameType.DATA, 0, id, Buffer.alloc(16_385)),
  "a header block that cannot be decoded": (c, id) =>
    c.send(FrameType.HEADERS, END_HEADERS, id, Buffer.from([0xff, 0xff, 0xff])),
  "a dynamic table entry that nobody allowed": (c, id) =>
    c.send(FrameType.HEADERS, END_HEADERS, id, Buffer.from([0xbe])),
  "a header table larger than announced": (c, id) =>
    c.send(FrameType.HEADERS, END_HEADERS, id, Buffer.from([0x3f, 0xe1, 0x1f])),
  "a header block without end": (c, id) => {
    c.send(FrameType.HEADERS, 0, id, okHead);
    for (let i = 0; i < 6; i++) c.send(FrameType.CONTINUATION, 0, id, Buffer.alloc(16_000));
  },
  "DATA amid a header block": (c, id) => {
    c.send(FrameType.HEADERS, 0, id, okHead);
    c.send(FrameType.DATA, 0, id, Buffer.alloc(3));
  },
  "a reply on a stream that was never opened": (c) => c.reply(99),
  "a reply on a stream of even number": (c) => c.reply(2),
  PUSH_PROMISE: (c, id) =>
    c.send(FrameType.PUSH_PROMISE, END_HEADERS, id, Buffer.concat([uint32(2), okHead])),
  "DATA on stream 0": (c) => c.send(FrameType.DATA, 0, 0, Buffer.alloc(3)),
  "SETTINGS of 5 bytes": (c) => c.send(FrameType.SETTINGS, 0, 0, Buffer.alloc(5)),
  "SETTINGS with a frame size that is none": (c) =>
    c.send(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.MAX_FRAME_SIZE, 100]])),
  "SETTINGS with a window over 2^31 - 1": (c) =>
    c.send(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 0x80000000]])),
  "WINDOW_UPDATE of 0 for the connection": (c) => c.send(FrameType.WINDOW_UPDATE, 0, 0, uint32(0)),
  "WINDOW_UPDATE beyond 2^31 - 1": (c) => c.send(FrameType.WINDOW_UPDATE, 0, 0, uint32(0x7fffffff)),
  "padding longer than the frame": (c, id) => c.send(FrameType.DATA, PADDED, id, Buffer.from([200, 1, 2])),
  "a PING of 7 bytes": (c) => c.send(FrameType.PING, 0, 0, Buffer.alloc(7)),
  "GOAWAY of 4 bytes": (c) => c.send(FrameType.GOAWAY, 0, 0, Buffer.alloc(4)),
  "more DATA than the connection's window": (c, id) => {
    c.send(FrameType.HEADERS, END_HEADERS, id, literal(":status", "200"));
    for (let i = 0; i < 1100; i++) c.send(FrameType.DATA, 0, id, Buffer.alloc(16_384));
    c.send(FrameType.PING, 0, 0, Buffer.alloc(1));
  },
  "the end of the connection": (c) => c.socket.end(),
  "a reset of the connection": (c) => c.socket.resetAndDestroy(),
};

describe("lean: a broken connection", () => {
  it.each(Object.keys(brokenConnections))("%s", async (name) => {
    const { transport } = await connect("lean", (connection, n) => {
      if (n === 0) connection.onRequest = (id) => brokenConnections[name]!(connection, id);
      connection.greet();
    });
    const outcome = await transport.infer(0, deadlineMs);
    expect(outcome.status).toBe(Status.UNAVAILABLE);
    expect(outcome.message).toMatch(/^the connection was lost: /);
    let next = await transport.infer(0, deadlineMs);
    for (let i = 0; i < 20 && next.status !== Status.OK; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      next = await transport.infer(0, deadlineMs);
    }
    expect(next).toMatchObject(fine);
  });

  it("a server that does not speak HTTP/2 is named at connect", async () => {
    const server = await RawServer.listen((connection) =>
      connection.socket.write("220 smtp.example ESMTP\r\n"),
    );
    closing.push(server);
    const transport = createTransport("lean", { address: server.address, payloads: [Buffer.alloc(1)] });
    closing.push(transport);
    await expect(transport.connect()).rejects.toThrow(
      /^cannot connect to 127\.0\.0\.1:\d+: the server broke HTTP\/2/,
    );
  });
});

/** Offences that concern one stream: the request fails with this status, the connection goes on. */
const brokenStreams: Record<string, [number, (connection: RawConnection, id: number) => void]> = {
  "no :status": [
    Status.INTERNAL,
    (c, id) => c.send(FrameType.HEADERS, END_HEADERS, id, literal("content-type", "application/grpc")),
  ],
  "a :status that is none": [
    Status.INTERNAL,
    (c, id) => c.send(FrameType.HEADERS, END_HEADERS, id, literal(":status", "fine")),
  ],
  "an end with informational headers": [
    Status.INTERNAL,
    (c, id) => c.send(FrameType.HEADERS, END_HEADERS | END_STREAM, id, literal(":status", "100")),
  ],
  "content before headers": [
    Status.INTERNAL,
    (c, id) => c.send(FrameType.DATA, 0, id, prefixed(Buffer.from("x"))),
  ],
  "an empty end before headers": [Status.INTERNAL, (c, id) => c.send(FrameType.DATA, END_STREAM, id)],
  "trailers that do not end the stream": [
    Status.INTERNAL,
    (c, id) => {
      c.send(FrameType.HEADERS, END_HEADERS, id, okHead);
      c.send(FrameType.HEADERS, END_HEADERS, id, okTrailers);
    },
  ],
  "WINDOW_UPDATE of 0": [Status.INTERNAL, (c, id) => c.send(FrameType.WINDOW_UPDATE, 0, id, uint32(0))],
  "WINDOW_UPDATE beyond 2^31 - 1": [
    Status.INTERNAL,
    (c, id) => c.send(FrameType.WINDOW_UPDATE, 0, id, uint32(0x7fffffff)),
  ],
  "two messages": [
    Status.UNIMPLEMENTED,
    (c, id) => {
      c.send(FrameType.HEADERS, END_HEADERS, id, okHead);
      for (const text of ["a", "b"]) c.send(FrameType.DATA, 0, id, prefixed(Buffer.from(text)));
    },
  ],
  "a message over 4 MiB": [
    Status.RESOURCE_EXHAUSTED,
    (c, id) => {
      c.send(FrameType.HEADERS, END_HEADERS, id, okHead);
      c.send(FrameType.DATA, 0, id, Buffer.concat([Buffer.from([0]), uint32(0xffffffff)]));
    },
  ],
  "RST_STREAM of an unknown code": [
    Status.UNKNOWN,
    (c, id) => c.send(FrameType.RST_STREAM, 0, id, uint32(0x1234)),
  ],
  "an end without grpc-status": [
    Status.UNKNOWN,
    (c, id) => {
      c.send(FrameType.HEADERS, END_HEADERS, id, okHead);
      c.send(FrameType.DATA, END_STREAM, id, prefixed(Buffer.from("x")));
    },
  ],
};

describe("lean: a broken stream", () => {
  it.each(Object.keys(brokenStreams))("%s", async (name) => {
    const [status, offend] = brokenStreams[name]!;
    const { transport, server } = await connect("lean", (connection) => {
      connection.onRequest = (id) => (id === 1 ? offend(connection, id) : connection.reply(id));
      connection.greet();
    });
    const outcome = await transport.infer(0, deadlineMs);
    expect(outcome).toMatchObject({ status, reply: undefined });
    expect(outcome.message).not.toBe("");
    expect(await transport.infer(1, deadlineMs)).toMatchObject(fine);
    expect(server.connections).toHaveLength(1);
  });

  it("frames for a request that has ended are dropped", async () => {
    const { transport, server } = await connect("lean", (connection) => {
      connection.onRequest = (id) => {
        connection.reply(id);
        if (id > 1) connection.reply(id - 2);
        connection.send(FrameType.WINDOW_UPDATE, 0, id, uint32(5));
        connection.send(FrameType.RST_STREAM, 0, id, uint32(ErrorCode.NO_ERROR));
      };
      connection.greet();
    });
    for (let i = 0; i < 5; i++) expect(await transport.infer(0, deadlineMs)).toMatchObject(fine);
    expect(server.connections).toHaveLength(1);
  });
});

describe("lean: fuzzed replies", () => {
  const octets = fc.uint8Array({ maxLength: 60 });
  const anyFrame = fc.tuple(
    fc.integer({ min: 0, max: 10 }),
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(0, 1, 1, 1, 3, 2),
    octets,
  );

  /** Answers one request with these frames on a fresh server; a good server takes over after a broken connection. */
  async function survives(frames: readonly (readonly [number, number, number, Uint8Array])[]): Promise<void> {
    const { transport } = await connect("lean", (connection, n) => {
      if (n === 0)
        connection.onRequest = (id) => {
          if (id > 1) return connection.reply(id);
          for (const [type, flags, streamId, payload] of frames)
            connection.send(type, flags, streamId, payload);
        };
      connection.greet();
    });
    const outcome = await transport.infer(0, 60);
    expect(Number.isInteger(outcome.status)).toBe(true);
    if (outcome.status === Status.OK) expect(Buffer.isBuffer(outcome.reply)).toBe(true);
    expect(transport.inFlight).toBe(0);
    for (const one of closing.splice(0).reverse()) await one.close();
  }

  it("neither crash nor hang nor leave a request open", async () => {
    await fc.assert(fc.asyncProperty(fc.array(anyFrame, { minLength: 1, maxLength: 8 }), survives), {
      numRuns: 40,
    });
  });
});
