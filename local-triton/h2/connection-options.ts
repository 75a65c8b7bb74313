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
