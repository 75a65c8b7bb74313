/** HTTP/2 wire constants and frame headers (RFC 9113). */

export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  PRIORITY: 0x2,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
  CONTINUATION: 0x9,
} as const;

export const Flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8, PRIORITY: 0x20 } as const;

export const ErrorCode = {
  NO_ERROR: 0x0,
  PROTOCOL_ERROR: 0x1,
  INTERNAL_ERROR: 0x2,
  FLOW_CONTROL_ERROR: 0x3,
  SETTINGS_TIMEOUT: 0x4,
  STREAM_CLOSED: 0x5,
  FRAME_SIZE_ERROR: 0x6,
  REFUSED_STREAM: 0x7,
  CANCEL: 0x8,
  COMPRESSION_ERROR: 0x9,
  CONNECT_ERROR: 0xa,
  ENHANCE_YOUR_CALM: 0xb,
  INADEQUATE_SECURITY: 0xc,
  HTTP_1_1_REQUIRED: 0xd,
} as const;

const errorNames = new Map<number, string>(Object.entries(ErrorCode).map(([name, code]) => [code, name]));

/** An error code's name; `error 0x<n>` for a number that RFC 9113 does not define. */
export function errorCodeName(code: number): string {
  return errorNames.get(code) ?? `error 0x${code.toString(16)}`;
}

export const SettingId = {
  HEADER_TABLE_SIZE: 0x1,
  ENABLE_PUSH: 0x2,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
  MAX_HEADER_LIST_SIZE: 0x6,
} as const;

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const FRAME_HEADER_BYTES = 9;
/** Window of a stream and of a connection before any SETTINGS or WINDOW_UPDATE, bytes. */
export const DEFAULT_WINDOW_BYTES = 65_535;
export const MAX_WINDOW_BYTES = 0x7fffffff;
/** Largest frame payload that every peer must accept, bytes. Neither side here sends larger ones: they save nothing measurable. */
export const MIN_MAX_FRAME_BYTES = 16_384;

/** The peer's offence that ends the whole connection with GOAWAY. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";

  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Writes a frame header at `at`; returns the offset behind it. */
export function writeFrameHeader(
  target: Buffer,
  at: number,
  payloadBytes: number,
  type: number,
  flags: number,
  streamId: number,
): number {
  target.writeUIntBE(payloadBytes, at, 3);
  target[at + 3] = type;
  target[at + 4] = flags;
  target.writeUInt32BE(streamId, at + 5);
  return at + FRAME_HEADER_BYTES;
}

/** A whole frame in a buffer of its own: for the rare control frames. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const buffer = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  buffer.set(payload, writeFrameHeader(buffer, 0, payload.length, type, flags, streamId));
  return buffer;
}

export function uint32(value: number): Buffer {
  const buffer = Buffer.allocUnsafe(4);
  buffer.writeUInt32BE(value);
  return buffer;
}

/** SETTINGS payload from [id, value] pairs. */
export function settingsPayload(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const buffer = Buffer.allocUnsafe(settings.length * 6);
  settings.forEach(([id, value], i) => {
    buffer.writeUInt16BE(id, i * 6);
    buffer.writeUInt32BE(value, i * 6 + 2);
  });
  return buffer;
}
