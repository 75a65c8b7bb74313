/** Sending side of a connection: which request goes next, and how much of it the peer's windows and the socket allow. */
import type { Socket } from "node:net";
import {
  ConnectionError,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  MAX_WINDOW_BYTES,
  MIN_MAX_FRAME_BYTES,
  SettingId,
} from "../../http2/frames";
import type { PendingRequest } from "./pending-request";
import type { RequestFrames } from "./request-frames";

/**
 * No further request is written while the socket holds this much that the kernel has not taken, bytes: requests wait as small
 * objects, not as 602 kB buffers.
 */
const SOCKET_BACKLOG_BYTES = 1024 * 1024;
const MAX_STREAM_ID = 0x7fffffff;
const MAX_MAX_FRAME_BYTES = 0xffffff;

export class SendFlow {
  /** Requests sent, at least in part, and not ended; by stream id. */
  readonly open = new Map<number, PendingRequest>();
  private waiting: PendingRequest[] = [];
  /** Requests of `open` with bytes left to send, oldest first. */
  private partial: PendingRequest[] = [];
  private connectionWindow = DEFAULT_WINDOW_BYTES;
  private initialWindow = DEFAULT_WINDOW_BYTES;
  private maxConcurrentStreams = Infinity;
  private nextStreamId = 1;
  private readonly pumpBound = (): void => this.pump();

  constructor(
    private readonly socket: Socket,
    private readonly frames: RequestFrames,
  ) {}

  /** Requests that this connection has to deal with. */
  get load(): number {
    return this.open.size + this.waiting.length;
  }

  /** False when the connection has used up its stream ids. */
  get hasStreamIds(): boolean {
    return this.nextStreamId <= MAX_STREAM_ID;
  }

  /** Whether a stream of this id was opened at some time. */
  wasOpened(streamId: number): boolean {
    return (streamId & 1) === 1 && streamId < this.nextStreamId;
  }

  add(request: PendingRequest): void {
    this.waiting.push(request);
    this.pump();
  }

  /** Takes the request off the connection, wherever it stands. */
  remove(request: PendingRequest): void {
    if (request.streamId === 0) {
      this.waiting = this.waiting.filter((other) => other !== request);
      return;
    }
    this.open.delete(request.streamId);
    if (!this.isSent(request)) this.partial = this.partial.filter((other) => other !== request);
  }

  /** Takes off and returns the requests of which nothing was sent. */
  takeWaiting(): PendingRequest[] {
    const { waiting } = this;
    this.waiting = [];
    return waiting;
  }

  /** Takes off and returns the requests that were sent, at least in part. */
  takeOpen(): PendingRequest[] {
    const requests = [...this.open.values()];
    this.open.clear();
    this.partial = [];
    return requests;
  }

  isSent(request: PendingRequest): boolean {
    return request.sentBytes === this.frames.messageBytes(request.payloadIndex);
  }

  /** Sends what may be sent: first the rest of what is under way, oldest first, then new requests. */
  pump(): void {
    if (this.partial.length > 0) {
      for (const request of this.partial) {
        if (this.isBlocked()) break;
        this.sendMore(request);
      }
      this.partial = this.partial.filter((request) => !this.isSent(request));
    }
    while (
      this.waiting.length > 0 &&
      this.open.size < this.maxConcurrentStreams &&
      this.hasStreamIds &&
      !this.isBlocked()
    )
      this.start(this.waiting.shift()!);
  }

  /**
   * The caller acknowledges the settings before it pumps: a server counts by a larger window only when it has read the
   * acknowledgement.
   * @throws ConnectionError when a value is out of the protocol's range
   */
  applySettings(payload: Buffer): void {
    for (let at = 0; at < payload.length; at += 6)
      this.applySetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  }

  /** WINDOW_UPDATE of the connection. @throws ConnectionError */
  growConnection(increment: number): void {
    if (increment === 0)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "a WINDOW_UPDATE of the connection adds nothing");
    this.connectionWindow += increment;
    checkWindow(this.connectionWindow, "the connection's window");
    this.pump();
  }

  /** WINDOW_UPDATE of a stream; returns the error code to reset it with when it is none. */
  growStream(request: PendingRequest, increment: number): number | undefined {
    if (increment === 0) return ErrorCode.PROTOCOL_ERROR;
    request.windowBytes += increment;
    if (request.windowBytes > MAX_WINDOW_BYTES) return ErrorCode.FLOW_CONTROL_ERROR;
    this.pump();
    return undefined;
  }

  private applySetting(id: number, value: number): void {
    if (id === SettingId.MAX_CONCURRENT_STREAMS) this.maxConcurrentStreams = value;
    if (id === SettingId.MAX_FRAME_SIZE && (value < MIN_MAX_FRAME_BYTES || value > MAX_MAX_FRAME_BYTES))
      throw new ConnectionError(
        ErrorCode.PROTOCOL_ERROR,
        `SETTINGS_MAX_FRAME_SIZE of ${value} is out of range`,
      );
    if (id === SettingId.ENABLE_PUSH && value !== 0)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "a server must not enable push");
    if (id !== SettingId.INITIAL_WINDOW_SIZE) return;
    checkWindow(value, "SETTINGS_INITIAL_WINDOW_SIZE");
    const change = value - this.initialWindow;
    this.initialWindow = value;
    for (const request of this.open.values()) {
      request.windowBytes += change;
      checkWindow(request.windowBytes, "a stream's window");
    }
  }

  private isBlocked(): boolean {
    return this.connectionWindow <= 0 || this.socket.writableLength >= SOCKET_BACKLOG_BYTES;
  }

  private start(request: PendingRequest): void {
    const { payloadIndex } = request;
    const streamId = this.nextStreamId;
    this.nextStreamId += 2;
    request.streamId = streamId;
    request.windowBytes = this.initialWindow;
    this.open.set(streamId, request);
    const messageBytes = this.frames.messageBytes(payloadIndex);
    const fits = messageBytes <= this.connectionWindow && messageBytes <= request.windowBytes;
    const buffer = fits ? this.frames.acquire(payloadIndex, streamId, request.remainingMs) : undefined;
    if (buffer !== undefined) {
      this.spend(request, messageBytes);
      let isReleased = false;
      this.socket.write(buffer, () => {
        if (!isReleased) this.frames.release(payloadIndex, buffer);
        this.pump();
      });
      // Nothing is queued: the kernel has copied it all. The next request then takes the same bytes from the processor's cache.
      isReleased = this.socket.writableLength === 0;
      if (isReleased) this.frames.release(payloadIndex, buffer);
      return;
    }
    this.socket.cork();
    this.socket.write(this.frames.headers(payloadIndex, streamId, request.remainingMs));
    this.sendMore(request);
    this.socket.uncork();
    if (!this.isSent(request)) this.partial.push(request);
  }

  private sendMore(request: PendingRequest): void {
    const { payloadIndex, streamId, sentBytes } = request;
    const left = this.frames.messageBytes(payloadIndex) - sentBytes;
    const bytes = Math.min(left, request.windowBytes, this.connectionWindow);
    if (bytes <= 0) return;
    this.socket.cork();
    this.frames.data(payloadIndex, streamId, sentBytes, sentBytes + bytes, (part) => this.socket.write(part));
    this.socket.uncork();
    this.spend(request, bytes);
    if (this.socket.writableLength >= SOCKET_BACKLOG_BYTES) this.socket.once("drain", this.pumpBound);
  }

  private spend(request: PendingRequest, bytes: number): void {
    request.sentBytes += bytes;
    request.windowBytes -= bytes;
    this.connectionWindow -= bytes;
  }
}

function checkWindow(bytes: number, what: string): void {
  if (bytes > MAX_WINDOW_BYTES)
    throw new ConnectionError(
      ErrorCode.FLOW_CONTROL_ERROR,
      `${what} is ${bytes} bytes, over ${MAX_WINDOW_BYTES}`,
    );
}
