import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameParser } from "../../http2/frame-parser";
import { ConnectionError, ErrorCode, Flag, frame, FrameType, PREFACE } from "../../http2/frames";

/** What a parser reports, with the parts of DATA joined. */
function parse(chunks: readonly Buffer[], expectPreface = false): unknown[] {
  const seen: unknown[] = [];
  let data: Buffer[] = [];
  const parser = new FrameParser(
    {
      frame: (type, flags, streamId, payload) => seen.push([type, flags, streamId, payload.toString("hex")]),
      dataStart: (streamId, frameBytes) => {
        data = [];
        seen.push(["data", streamId, frameBytes]);
      },
      dataPart: (source, start, end) => data.push(Buffer.from(source.subarray(start, end))),
      dataEnd: (endStream) => seen.push([Buffer.concat(data).toString("hex"), endStream]),
    },
    { maxFrameBytes: 16_384, maxControlFrameBytes: 4096, expectPreface },
  );
  for (const chunk of chunks) parser.push(chunk);
  return seen;
}

function codeOf(bytes: Buffer, expectPreface = false): number {
  try {
    parse([bytes], expectPreface);
  } catch (error) {
    if (error instanceof ConnectionError) return error.code;
    throw error;
  }
  return NaN;
}

const anyFrame = fc
  .record({
    type: fc.integer({ min: 0, max: 12 }),
    flags: fc.constantFrom(0, Flag.END_STREAM, Flag.END_HEADERS),
    streamId: fc.integer({ min: 0, max: 0x7fffffff }),
    payload: fc.uint8Array({ maxLength: 300 }),
  })
  .map(({ type, flags, streamId, payload }) => frame(type, flags, streamId, payload));

describe("FrameParser", () => {
  it("finds the same frames wherever the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(anyFrame, { maxLength: 8 }),
        fc.array(fc.nat(2000), { maxLength: 10 }),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames);
          const points = [
            0,
            ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b),
            bytes.length,
          ];
          const chunks = points.slice(1).map((end, i) => bytes.subarray(points[i], end));
          expect(parse(chunks)).toEqual(parse([bytes]));
          expect(parse([bytes]).length).toBeGreaterThanOrEqual(frames.length);
        },
      ),
    );
  });

  it("takes padding off DATA and counts it for flow control", () => {
    const padded = frame(
      FrameType.DATA,
      Flag.PADDED | Flag.END_STREAM,
      5,
      Buffer.from([3, 0xaa, 0xbb, 0, 0, 0]),
    );
    expect(parse([padded])).toEqual([
      ["data", 5, 6],
      ["aabb", true],
    ]);
  });

  it("expects the preface from clients only", () => {
    const ping = frame(FrameType.PING, 0, 0, Buffer.alloc(8));
    expect(parse([PREFACE, ping], true)).toHaveLength(1);
    expect(codeOf(ping, true)).toBe(ErrorCode.PROTOCOL_ERROR);
    expect(parse([ping])).toHaveLength(1);
  });

  it("refuses frames that are too large or whose padding is", () => {
    expect(codeOf(frame(FrameType.DATA, 0, 1, Buffer.alloc(16_385)))).toBe(ErrorCode.FRAME_SIZE_ERROR);
    expect(codeOf(frame(FrameType.HEADERS, 0, 1, Buffer.alloc(4097)))).toBe(ErrorCode.ENHANCE_YOUR_CALM);
    expect(codeOf(frame(FrameType.DATA, Flag.PADDED, 1, Buffer.from([9, 1])))).toBe(ErrorCode.PROTOCOL_ERROR);
    expect(codeOf(frame(FrameType.DATA, Flag.PADDED, 1, Buffer.alloc(0)))).toBe(ErrorCode.FRAME_SIZE_ERROR);
  });
});
