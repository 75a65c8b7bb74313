import { GRPC_PREFIX_BYTES, grpcMessageBytes, withGrpcPrefix } from "../../http2/grpc-prefix";
import { GrpcStatusCode } from "../../kserve/status";
import type { ServerStream, StreamReceiver } from "../h2/stream";
import { errorHead, OK_TRAILERS, RESPONSE_HEAD } from "./header-blocks";
import type { MessagePool } from "./message-pool";
import { StatusError, type StatusCode } from "./status";

/** Answers one call of a method. */
export type UnaryHandler = (
  /** The request message; only valid during the call, its memory is used again. */
  message: Buffer,
  call: UnaryCall,
) => void;

/** One unary call: takes the message out of the request's body, hands it to the handler, and carries the answer back. */
export class UnaryCall implements StreamReceiver {
  /** Called when the client cancels, its deadline passes or its connection breaks before the answer. */
  onCancelled: (() => void) | null = null;
  private readonly prefix = Buffer.allocUnsafe(GRPC_PREFIX_BYTES);
  private prefixBytes = 0;
  private message: Buffer | null = null;
  private messageBytes = 0;
  private deadlineTimer: NodeJS.Timeout | null = null;
  private done = false;

  constructor(
    private readonly stream: ServerStream,
    private readonly handler: UnaryHandler,
    private readonly pool: MessagePool,
    private readonly maxMessageBytes: number,
    /** Milliseconds from now; null for none. */
    deadlineMs: number | null,
    private readonly onDone: () => void,
  ) {
    if (deadlineMs !== null) {
      this.deadlineTimer = setTimeout(() => this.expire(), deadlineMs);
      this.deadlineTimer.unref();
    }
  }

  /** Answered, cancelled or expired. */
  get over(): boolean {
    return this.done;
  }

  /** Answers with a serialized message. Ignored when the call is over. */
  respond(message: Buffer): void {
    if (this.done) return;
    const body = withGrpcPrefix(message);
    this.finish();
    this.stream.respond(RESPONSE_HEAD, body, OK_TRAILERS);
  }

  /** Answers with an error. Ignored when the call is over. */
  fail(code: StatusCode, message: string): void {
    if (this.done) return;
    this.finish();
    this.stream.respond(errorHead(code, message));
  }

  /** Answers with what was thrown: a StatusError as it is, anything else as INTERNAL. */
  failWith(error: unknown): void {
    if (error instanceof StatusError) this.fail(error.code, error.message);
    else this.fail(GrpcStatusCode.INTERNAL, `unexpected error in the server: ${String(error)}`);
  }

  data(source: Buffer, start: number, end: number): void {
    let at = start;
    while (!this.done && at < end) {
      if (this.prefixBytes < GRPC_PREFIX_BYTES) {
        const copied = source.copy(
          this.prefix,
          this.prefixBytes,
          at,
          Math.min(end, at + GRPC_PREFIX_BYTES - this.prefixBytes),
        );
        this.prefixBytes += copied;
        at += copied;
        if (this.prefixBytes === GRPC_PREFIX_BYTES) this.startMessage();
        continue;
      }
      const room = this.message!.length - this.messageBytes;
      if (room === 0)
        return this.fail(GrpcStatusCode.UNIMPLEMENTED, "Too many request messages: this method takes one.");
      const copied = source.copy(this.message!, this.messageBytes, at, Math.min(end, at + room));
      this.messageBytes += copied;
      at += copied;
    }
  }

  end(): void {
    if (this.done) return;
    const { message } = this;
    if (message === null || this.messageBytes < message.length) {
      return this.fail(GrpcStatusCode.INTERNAL, "The request ended before its message was complete.");
    }
    try {
      this.handler(message, this);
    } catch (error) {
      this.failWith(error);
    }
    this.releaseMessage();
  }

  reset(): void {
    if (this.done) return;
    this.finish();
    this.onCancelled?.();
  }

  private startMessage(): void {
    const bytes = grpcMessageBytes(this.prefix, 0);
    if (this.prefix[0] !== 0) {
      return this.fail(
        GrpcStatusCode.UNIMPLEMENTED,
        "Compressed requests are not supported; send grpc-encoding: identity.",
      );
    }
    if (bytes > this.maxMessageBytes) {
      return this.fail(
        GrpcStatusCode.RESOURCE_EXHAUSTED,
        `Received message larger than max (${bytes} vs. ${this.maxMessageBytes})`,
      );
    }
    this.message = this.pool.take(bytes);
    if (this.message === null)
      this.fail(GrpcStatusCode.RESOURCE_EXHAUSTED, "Too many requests are being received at once.");
  }

  private expire(): void {
    this.fail(GrpcStatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded");
    this.onCancelled?.();
  }

  private finish(): void {
    this.done = true;
    if (this.deadlineTimer !== null) clearTimeout(this.deadlineTimer);
    this.onDone();
    // While the handler runs it may still read the message it was given; then `end` releases it.
    if (this.message !== null && this.messageBytes < this.message.length) this.releaseMessage();
  }

  private releaseMessage(): void {
    if (this.message !== null) this.pool.give(this.message);
    this.message = null;
  }
}
