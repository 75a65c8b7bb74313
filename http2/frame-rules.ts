import { ConnectionError, ErrorCode, Flag, FrameType } from "./frames";

/** Payload sizes that are fixed by RFC 9113, bytes. */
const FIXED_BYTES: Readonly<Record<number, number>> = {
  [FrameType.PRIORITY]: 5,
  [FrameType.RST_STREAM]: 4,
  [FrameType.PING]: 8,
  [FrameType.WINDOW_UPDATE]: 4,
};

/** Frame types that belong to a stream, and those that belong to the connection. WINDOW_UPDATE may be either. */
const OF_STREAM: ReadonlySet<number> = new Set([FrameType.PRIORITY, FrameType.RST_STREAM]);
const OF_CONNECTION: ReadonlySet<number> = new Set([FrameType.SETTINGS, FrameType.PING, FrameType.GOAWAY]);

/**
 * Checks what can be said about a control frame without the connection's state: size, stream, direction.
 * @throws ConnectionError FRAME_SIZE_ERROR or PROTOCOL_ERROR
 */
export function checkFrameRules(type: number, flags: number, streamId: number, payloadBytes: number): void {
  const fixed = FIXED_BYTES[type];
  if (fixed !== undefined && payloadBytes !== fixed) {
    throw new ConnectionError(
      ErrorCode.FRAME_SIZE_ERROR,
      `A frame of type ${type} has ${payloadBytes} bytes, not ${fixed}.`,
    );
  }
  if (OF_STREAM.has(type) && streamId === 0) {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `A frame of type ${type} names no stream.`);
  }
  if (OF_CONNECTION.has(type) && streamId !== 0) {
    throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, `A frame of type ${type} names a stream.`);
  }
  if (type === FrameType.PUSH_PROMISE) {
    throw new ConnectionError(
      ErrorCode.PROTOCOL_ERROR,
      "PUSH_PROMISE is not allowed: a client sends none, and a server none that was not enabled.",
    );
  }
  if (type === FrameType.GOAWAY && payloadBytes < 8) {
    throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "A GOAWAY frame is too short.");
  }
  if (type === FrameType.SETTINGS) {
    const isAck = (flags & Flag.ACK) !== 0;
    if (isAck ? payloadBytes !== 0 : payloadBytes % 6 !== 0) {
      throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, `A SETTINGS frame has ${payloadBytes} bytes.`);
    }
  }
}
