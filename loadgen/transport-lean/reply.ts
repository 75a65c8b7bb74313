/** One reply of a unary gRPC call, put together from its header blocks and DATA content (gRPC over HTTP/2). */
import type { HeaderFields } from "../../http2/header-decoder";
import { decodeGrpcMessage } from "../../http2/grpc-message";
import { GRPC_PREFIX_BYTES, grpcMessageBytes } from "../../http2/grpc-prefix";
import { GrpcStatusCode } from "../../kserve/status";
import { failure, failureOfHttpStatus, type Failure } from "../grpc-outcome";

/** Largest reply message, bytes: gRPC's default limit. */
export const MAX_REPLY_BYTES = 4 * 1024 * 1024;

/** What a client needs of a header block. */
export interface ReplyHead {
  /** Value of :status; undefined in trailers; NaN when it is no number. */
  readonly httpStatus: number | undefined;
  readonly isGrpc: boolean;
  readonly grpcStatus: string | undefined;
  readonly grpcMessage: string;
}

export function interpretReplyHead(fields: HeaderFields): ReplyHead {
  const status = fields.get(":status");
  return {
    httpStatus: status === undefined ? undefined : /^[1-9]\d\d$/.test(status) ? Number(status) : NaN,
    isGrpc: /^application\/grpc(?:$|[+;])/.test(fields.get("content-type") ?? ""),
    grpcStatus: fields.get("grpc-status"),
    grpcMessage: decodeGrpcMessage(fields.get("grpc-message") ?? ""),
  };
}

const NOTHING = Buffer.alloc(0);

type Phase = "headers" | "body" | "ended";

/**
 * Methods return a Failure when the reply breaks the rules: the stream must then be reset and the failure is the outcome.
 * When the stream has ended properly, `outcome` says what it was.
 */
export class Reply {
  private phase: Phase = "headers";
  private httpStatus = 200;
  private isGrpc = false;
  private trailers: ReplyHead | undefined;
  /** The message's prefix while it is incomplete, big-endian. */
  private prefix: Buffer = NOTHING;
  private message: Buffer | undefined;
  private messageBytes = 0;

  get ended(): boolean {
    return this.phase === "ended";
  }

  head(head: ReplyHead, endStream: boolean): Failure | undefined {
    if (this.phase === "headers") {
      const { httpStatus } = head;
      if (httpStatus === undefined || Number.isNaN(httpStatus))
        return failure(GrpcStatusCode.INTERNAL, "the reply's first header block has no valid :status");
      if (httpStatus < 200)
        return endStream
          ? failure(GrpcStatusCode.INTERNAL, `the reply ended with informational status ${httpStatus}`)
          : undefined;
      this.httpStatus = httpStatus;
      this.isGrpc = head.isGrpc;
      this.phase = "body";
      if (endStream) this.trailers = head;
    } else {
      if (!endStream)
        return failure(GrpcStatusCode.INTERNAL, "the reply has a header block amid its content");
      this.trailers = head;
    }
    if (endStream) this.phase = "ended";
    return undefined;
  }

  data(source: Buffer, start: number, end: number): Failure | undefined {
    if (this.phase === "headers")
      return failure(GrpcStatusCode.INTERNAL, "the reply has content before its headers");
    if (!this.isGrpc) return undefined;
    let at = start;
    if (this.message === undefined) {
      let problem: Failure | undefined;
      if (this.prefix.length === 0 && end - start >= GRPC_PREFIX_BYTES) {
        at = start + GRPC_PREFIX_BYTES;
        problem = this.startMessage(source[start]!, grpcMessageBytes(source, start));
      } else {
        at = Math.min(end, start + GRPC_PREFIX_BYTES - this.prefix.length);
        this.prefix = Buffer.concat([this.prefix, source.subarray(start, at)]);
        if (this.prefix.length < GRPC_PREFIX_BYTES) return undefined;
        problem = this.startMessage(this.prefix[0]!, grpcMessageBytes(this.prefix, 0));
      }
      if (problem !== undefined) return problem;
    }
    const copied = source.copy(this.message!, this.messageBytes, at, end);
    this.messageBytes += copied;
    if (copied < end - at)
      return failure(GrpcStatusCode.UNIMPLEMENTED, "the reply has more than one message");
    return undefined;
  }

  /** END_STREAM on a DATA frame. */
  end(): Failure | undefined {
    if (this.phase === "headers")
      return failure(GrpcStatusCode.INTERNAL, "the reply has content before its headers");
    this.phase = "ended";
    return undefined;
  }

  /** Message of a successful reply, or why there is none. Only after the end. */
  outcome(): Buffer | Failure {
    const status = this.trailers?.grpcStatus;
    if (status === undefined) {
      if (this.httpStatus !== 200 || !this.isGrpc) return failureOfHttpStatus(this.httpStatus);
      return failure(GrpcStatusCode.UNKNOWN, "the reply ended without a grpc-status");
    }
    if (!/^\d{1,9}$/.test(status))
      return failure(
        GrpcStatusCode.UNKNOWN,
        `the reply has grpc-status ${JSON.stringify(status.slice(0, 40))}`,
      );
    if (Number(status) !== GrpcStatusCode.OK) return failure(Number(status), this.trailers!.grpcMessage);
    if (this.message === undefined) {
      if (this.prefix.length > 0) return failure(GrpcStatusCode.INTERNAL, "the reply's message is cut off");
      return failure(GrpcStatusCode.UNIMPLEMENTED, "the reply has status OK but no message");
    }
    if (this.messageBytes < this.message.length)
      return failure(
        GrpcStatusCode.INTERNAL,
        `the reply's message is cut off after ${this.messageBytes} of ${this.message.length} bytes`,
      );
    return this.message;
  }

  private startMessage(compressed: number, bytes: number): Failure | undefined {
    if (compressed !== 0)
      return failure(
        GrpcStatusCode.INTERNAL,
        `the reply's message has compressed flag ${compressed}, but no compression was offered`,
      );
    if (bytes > MAX_REPLY_BYTES)
      return failure(
        GrpcStatusCode.RESOURCE_EXHAUSTED,
        `the reply's message has ${bytes} bytes, over the limit of ${MAX_REPLY_BYTES}`,
      );
    this.message = Buffer.allocUnsafe(bytes);
    return undefined;
  }
}
