import {
  ConnectionError,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  MAX_WINDOW_BYTES,
  SettingId,
} from "../../http2/frames";
import type { ServerStream } from "./stream";

/** How much the client lets this server send: its settings and its window updates. */
export class SendFlow {
  /** Bytes of DATA that the connection's window still allows. */
  connectionWindow = DEFAULT_WINDOW_BYTES;
  /** Window that a new stream starts with, bytes. */
  initialStreamWindow = DEFAULT_WINDOW_BYTES;

  constructor(private readonly streams: ReadonlyMap<number, ServerStream>) {}

  /** @throws ConnectionError when a value is out of the protocol's range. */
  applySettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6) {
      this.applySetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
  }

  /** A WINDOW_UPDATE of the connection. */
  grow(increment: number): void {
    if (increment === 0)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "A WINDOW_UPDATE frame adds nothing.");
    this.connectionWindow += increment;
    checkWindow(this.connectionWindow, "The connection's window");
    this.pump();
  }

  /** Goes on with the responses that wait for a window. */
  private pump(): void {
    for (const stream of this.streams.values()) {
      if (this.connectionWindow <= 0) return;
      if (stream.blocked) stream.pump();
    }
  }

  private applySetting(id: number, value: number): void {
    // The other settings do not concern this server: it pushes nothing and uses no HPACK table.
    if (id === SettingId.ENABLE_PUSH && value > 1) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is not 0 or 1.");
    }
    // This server sends frames of the smallest maximum, so a larger one changes nothing.
    if (id === SettingId.MAX_FRAME_SIZE && (value < 16_384 || value > 16_777_215)) {
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE is out of range.");
    }
    if (id !== SettingId.INITIAL_WINDOW_SIZE) return;
    checkWindow(value, "SETTINGS_INITIAL_WINDOW_SIZE");
    const change = value - this.initialStreamWindow;
    this.initialStreamWindow = value;
    for (const stream of this.streams.values()) {
      stream.sendWindow += change;
      checkWindow(stream.sendWindow, "A stream's window");
    }
    if (change > 0) this.pump();
  }
}

function checkWindow(bytes: number, what: string): void {
  if (bytes > MAX_WINDOW_BYTES) {
    throw new ConnectionError(
      ErrorCode.FLOW_CONTROL_ERROR,
      `${what} is ${bytes} bytes, over ${MAX_WINDOW_BYTES}.`,
    );
  }
}
