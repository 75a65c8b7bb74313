/** What this client lets a server send, and how it says so. */
import {
  ConnectionError,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  frame,
  FrameType,
  MIN_MAX_FRAME_BYTES,
  PREFACE,
  SettingId,
  settingsPayload,
  uint32,
} from "../../http2/frames";
import { MAX_REPLY_BYTES } from "./reply";

/** No dynamic table: every header block stands for itself, so equal ones are decoded once. */
export const HEADER_TABLE_BYTES = 0;
/** Receive window of a stream, bytes: enough for the largest reply, so that it needs no WINDOW_UPDATE. */
const STREAM_WINDOW_BYTES = MAX_REPLY_BYTES + MIN_MAX_FRAME_BYTES;
/** Receive window of the connection, bytes; refilled when half is used. */
const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;

/** First bytes on a connection: preface, settings, and the connection's window. */
export function greeting(): Buffer {
  const settings = settingsPayload([
    [SettingId.HEADER_TABLE_SIZE, HEADER_TABLE_BYTES],
    [SettingId.ENABLE_PUSH, 0],
    [SettingId.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES],
  ]);
  const window = uint32(CONNECTION_WINDOW_BYTES - DEFAULT_WINDOW_BYTES);
  return Buffer.concat([
    PREFACE,
    frame(FrameType.SETTINGS, 0, 0, settings),
    frame(FrameType.WINDOW_UPDATE, 0, 0, window),
  ]);
}

/** Receive window of a connection. */
export class ReceiveWindow {
  private left = CONNECTION_WINDOW_BYTES;

  /**
   * Takes the payload of a DATA frame off the window; returns the WINDOW_UPDATE frame that is due, if any.
   * @throws ConnectionError when the server sent more than it may
   */
  take(bytes: number): Buffer | undefined {
    this.left -= bytes;
    if (this.left < 0)
      throw new ConnectionError(ErrorCode.FLOW_CONTROL_ERROR, "the server overran the connection's window");
    if (this.left >= CONNECTION_WINDOW_BYTES / 2) return undefined;
    const used = CONNECTION_WINDOW_BYTES - this.left;
    this.left = CONNECTION_WINDOW_BYTES;
    return frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(used));
  }
}
