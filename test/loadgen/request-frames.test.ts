import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameParser } from "../../http2/frame-parser";
import { Flag, FrameType } from "../../http2/frames";
import { HeaderDecoder } from "../../http2/header-decoder";
import { RequestFrames } from "../../loadgen/transport-lean/request-frames";

/** What a server reads from these bytes. */
function parse(bytes: Buffer): {
  streamIds: Set<number>;
  fields: Map<string, string>;
  body: Buffer;
  ended: boolean;
} {
  const streamIds = new Set<number>();
  const parts: Buffer[] = [];
  let fields = new Map<string, string>();
  let ended = false;
  const parser = new FrameParser(
    {
      frame: (type, flags, streamId, payload) => {
        expect(type).toBe(FrameType.HEADERS);
        expect(flags).toBe(Flag.END_HEADERS);
        streamIds.add(streamId);
        fields = new Map(new HeaderDecoder(4096, (all) => all).decode(payload));
      },
      dataStart: (streamId, frameBytes) => {
        expect(ended).toBe(false);
        expect(frameBytes).toBeLessThanOrEqual(16_384);
        streamIds.add(streamId);
      },
      dataPart: (source, start, end) => parts.push(Buffer.from(source.subarray(start, end))),
      dataEnd: (endStream) => (ended = endStream),
    },
    { maxFrameBytes: 16_384, maxControlFrameBytes: 16_384, expectPreface: false },
  );
  parser.push(bytes);
  return { streamIds, fields, body: Buffer.concat(parts), ended };
}

const message = fc
  .integer({ min: 0, max: 50_000 })
  .map((bytes) => Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => i * 7)));
const streamId = fc.integer({ min: 0, max: 0x3fffffff }).map((half) => 2 * half + 1);

function prefixed(content: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(content.length, 1);
  return Buffer.concat([prefix, content]);
}

describe("RequestFrames", () => {
  it("whole requests: one stream, proper headers, the message, an end", () => {
    fc.assert(
      fc.property(message, streamId, fc.integer({ min: 1, max: 10_000_000 }), (content, id, timeoutMs) => {
        const frames = new RequestFrames("server.example:8001", [content]);
        const parsed = parse(frames.acquire(0, id, timeoutMs)!);
        expect([...parsed.streamIds]).toEqual([id]);
        expect(Object.fromEntries(parsed.fields)).toEqual({
          ":method": "POST",
          ":scheme": "http",
          ":path": "/inference.GRPCInferenceService/ModelInfer",
          ":authority": "server.example:8001",
          te: "trailers",
          "content-type": "application/grpc",
          "user-agent": "triton-slo-loadgen",
          "grpc-timeout": `${String(timeoutMs).padStart(8, "0")}m`,
        });
        expect(parsed.body.equals(prefixed(content))).toBe(true);
        expect(parsed.ended).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("requests in pieces of any size say the same", () => {
    fc.assert(
      fc.property(
        message,
        streamId,
        fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1 }),
        (content, id, sizes) => {
          const frames = new RequestFrames("a:1", [content]);
          const parts = [frames.headers(0, id, 5000)];
          const total = frames.messageBytes(0);
          expect(total).toBe(content.length + 5);
          for (let from = 0, i = 0; from < total; i++) {
            const to = Math.min(total, from + sizes[i % sizes.length]!);
            frames.data(0, id, from, to, (part) => parts.push(part));
            from = to;
          }
          const parsed = parse(Buffer.concat(parts));
          expect([...parsed.streamIds]).toEqual([id]);
          expect(parsed.body.equals(prefixed(content))).toBe(true);
          expect(parsed.ended).toBe(true);
        },
      ),
      { numRuns: 50 },
    );
  });

  it("a buffer that a socket still holds is not used again; a released one is", () => {
    const frames = new RequestFrames("a:1", [Buffer.from("one"), Buffer.from("two")]);
    const held = frames.acquire(0, 1, 100)!;
    const copy = Buffer.from(held);
    const others: Buffer[] = [];
    for (let id = 3; ; id += 2) {
      const other = frames.acquire(0, id, 100);
      if (other === undefined) break;
      expect(other).not.toBe(held);
      others.push(other);
    }
    expect(others).toHaveLength(7);
    expect(frames.acquire(1, 99, 100)).toBeDefined();
    expect(held.equals(copy)).toBe(true);
    frames.release(0, held);
    expect(frames.acquire(0, 101, 100)).toBe(held);
    expect([...parse(held).streamIds]).toEqual([101]);
    // parts can be sent while every buffer is held, and carry the same content
    const parts = [frames.headers(0, 103, 100)];
    frames.data(0, 103, 0, 8, (part) => parts.push(part));
    expect(parse(Buffer.concat(parts)).body.toString("latin1", 5)).toBe("one");
  });

  it("a large pool has one buffer a payload", () => {
    const frames = new RequestFrames(
      "a:1",
      Array.from({ length: 20 }, (_, i) => Buffer.from(`${i}`)),
    );
    expect(frames.acquire(19, 1, 100)).toBeDefined();
    expect(frames.acquire(19, 3, 100)).toBeUndefined();
  });

  it("names a payload that is not in the pool", () => {
    expect(() => new RequestFrames("a:1", []).acquire(3, 1, 100)).toThrow(/no payload 3: the pool has 0/);
  });
});
