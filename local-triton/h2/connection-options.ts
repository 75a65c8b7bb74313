import {
  DEFAULT_WINDOW_BYTES,
  frame,
  FrameType,
  SettingId,
  settingsPayload,
  uint32,
} from "../../http2/frames";
import { HEADER_TABLE_BYTES } from "./request-head";

export interface ConnectionOptions {
  /** Requests a client may have open on one connection. */
  readonly maxConcurrentStreams: number;
  /** Receive window of one stream, bytes: a request up to this size needs no WINDOW_UPDATE of its own. */
  readonly streamWindowBytes: number;
  /** Receive window of the connection, bytes; refilled when half is used. */
  readonly connectionWindowBytes: number;
  /** Largest frame accepted, bytes. */
  readonly maxFrameBytes: number;
}

export const defaultConnectionOptions: ConnectionOptions = {
  maxConcurrentStreams: 10_000,
  streamWindowBytes: 4 * 1024 * 1024,
  connectionWindowBytes: 64 * 1024 * 1024,
  maxFrameBytes: 1024 * 1024,
};

/** What the server says first: its SETTINGS, and the growth of the connection's window. */
export function openingFrames(options: ConnectionOptions): Buffer {
  const settings = settingsPayload([
    [SettingId.HEADER_TABLE_SIZE, HEADER_TABLE_BYTES],
    [SettingId.MAX_CONCURRENT_STREAMS, options.maxConcurrentStreams],
    [SettingId.INITIAL_WINDOW_SIZE, options.streamWindowBytes],
    [SettingId.MAX_FRAME_SIZE, options.maxFrameBytes],
  ]);
  const growth = uint32(options.connectionWindowBytes - DEFAULT_WINDOW_BYTES);
  return Buffer.concat([
    frame(FrameType.SETTINGS, 0, 0, settings),
    frame(FrameType.WINDOW_UPDATE, 0, 0, growth),
  ]);
}
