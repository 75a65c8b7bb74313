import {
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  MIN_MAX_FRAME_BYTES,
  writeFrameHeader,
} from "../../http2/frames";
import type { SendFlow } from "./send-flow";

/** Takes the body of one request. */
export interface StreamReceiver {
  /** A part of the body: source[start..end), only valid during the call. */
  data(source: Buffer, start: number, end: number): void;
  /** The request is complete. */
  end(): void;
  /** The client cancelled it or the connection is gone; nothing can be sent any more. Not called after the response was sent. */
  reset(code: number): void;
}

/** What a stream needs of its connection. */
export interface StreamOwner {
  readonly flow: SendFlow;
  write(bytes: Buffer): void;
  /** The response has been written completely. */
  responseWritten(stream: ServerStream): void;
}

/** One request and its response. */
export class ServerStream {
  receiver: StreamReceiver | null = null;
  /** END_STREAM came from the client. */
  remoteClosed = false;
  /** The response was begun, or the stream was reset. */
  answered = false;
  /** What the client may still send, bytes. */
  receiveWindow: number;
  /** What may still be sent, bytes; can get negative by the client's SETTINGS. */
  sendWindow: number;
  private pendingBody: Buffer | null = null;
  private pendingAt = 0;
  private pendingTrailers: Buffer | null = null;

  constructor(
    readonly id: number,
    private readonly owner: StreamOwner,
    receiveWindow: number,
    sendWindow: number,
  ) {
    this.receiveWindow = receiveWindow;
    this.sendWindow = sendWindow;
  }

  /** Some of the response waits for the client's flow-control window. */
  get blocked(): boolean {
    return this.pendingTrailers !== null;
  }

  /** Sends a whole response. The blocks are HPACK-encoded; without trailers, `head` ends the stream and there is no body. */
  respond(head: Buffer, body?: Buffer, trailers?: Buffer): void {
    if (this.answered) return;
    this.answered = true;
    if (body === undefined || trailers === undefined) {
      this.owner.write(headersFrame(this.id, head, true));
      this.owner.responseWritten(this);
      return;
    }
    const fits =
      body.length <= MIN_MAX_FRAME_BYTES &&
      body.length <= this.sendWindow &&
      body.length <= this.owner.flow.connectionWindow;
    if (!fits) {
      this.owner.write(headersFrame(this.id, head, false));
      this.pendingBody = body;
      this.pendingTrailers = trailers;
      this.pump();
      return;
    }
    this.sendWindow -= body.length;
    this.owner.flow.connectionWindow -= body.length;
    const out = Buffer.allocUnsafe(3 * FRAME_HEADER_BYTES + head.length + body.length + trailers.length);
    let at = writeFrameHeader(out, 0, head.length, FrameType.HEADERS, Flag.END_HEADERS, this.id);
    at += head.copy(out, at);
    at = writeFrameHeader(out, at, body.length, FrameType.DATA, 0, this.id);
    at += body.copy(out, at);
    at = writeFrameHeader(
      out,
      at,
      trailers.length,
      FrameType.HEADERS,
      Flag.END_HEADERS | Flag.END_STREAM,
      this.id,
    );
    trailers.copy(out, at);
    this.owner.write(out);
    this.owner.responseWritten(this);
  }

  /** Goes on with a response that waits for a window. */
  pump(): void {
    const { pendingBody: body, pendingTrailers: trailers, owner } = this;
    if (body === null || trailers === null) return;
    while (this.pendingAt < body.length) {
      const size = Math.min(
        body.length - this.pendingAt,
        MIN_MAX_FRAME_BYTES,
        this.sendWindow,
        owner.flow.connectionWindow,
      );
      if (size <= 0) return;
      const out = Buffer.allocUnsafe(FRAME_HEADER_BYTES + size);
      const at = writeFrameHeader(out, 0, size, FrameType.DATA, 0, this.id);
      body.copy(out, at, this.pendingAt, this.pendingAt + size);
      this.pendingAt += size;
      this.sendWindow -= size;
      owner.flow.connectionWindow -= size;
      owner.write(out);
    }
    this.pendingBody = null;
    this.pendingTrailers = null;
    owner.write(headersFrame(this.id, trailers, true));
    owner.responseWritten(this);
  }
}

function headersFrame(streamId: number, block: Buffer, endStream: boolean): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER_BYTES + block.length);
  const flags = Flag.END_HEADERS | (endStream ? Flag.END_STREAM : 0);
  block.copy(out, writeFrameHeader(out, 0, block.length, FrameType.HEADERS, flags, streamId));
  return out;
}
