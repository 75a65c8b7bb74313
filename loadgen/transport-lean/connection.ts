/** One HTTP/2 connection to a server (RFC 9113), for unary gRPC calls only. */
import type { Socket } from "node:net";
import { FrameParser, type FrameSink } from "../../http2/frame-parser";
import { checkFrameRules } from "../../http2/frame-rules";
import {
  ConnectionError,
  ErrorCode,
  errorCodeName,
  Flag,
  frame,
  FrameType,
  MAX_WINDOW_BYTES,
  MIN_MAX_FRAME_BYTES,
  uint32,
} from "../../http2/frames";
import { HeaderBlockCollector } from "../../http2/header-block";
import { HeaderDecoder } from "../../http2/header-decoder";
import { GrpcStatusCode } from "../../kserve/status";
import { failure, failureOfReset, type Failure } from "../grpc-outcome";
import { openSocket, type Endpoint } from "./open-socket";
import type { PendingRequest } from "./pending-request";
import { greeting, HEADER_TABLE_BYTES, ReceiveWindow } from "./receive-limits";
import { interpretReplyHead } from "./reply";
import type { RequestFrames } from "./request-frames";
import { SendFlow } from "./send-flow";

/** What a connection tells the transport. */
export interface ConnectionOwner {
  /** Takes requests that no server has looked at; they may be sent on another connection. */
  redispatch(requests: readonly PendingRequest[]): void;
  /** No new requests here: the server said GOAWAY, or the stream ids are used up. Open requests go on. */
  draining(connection: LeanConnection, reason: string): void;
  /** The connection is gone. */
  closed(connection: LeanConnection, reason: string): void;
}

const CONNECT_TIMEOUT_MS = 5000;
const MAX_CONTROL_FRAME_BYTES = MIN_MAX_FRAME_BYTES;
/** A server that makes this client answer more than this without reading the answers is cut off, bytes. */
const MAX_UNREAD_CONTROL_BYTES = 1024 * 1024;

type State = "opening" | "ready" | "draining" | "closed";

export class LeanConnection implements FrameSink {
  private state: State = "opening";
  private readonly socket: Socket;
  private readonly flow: SendFlow;
  private readonly parser = new FrameParser(this, {
    maxFrameBytes: MIN_MAX_FRAME_BYTES,
    maxControlFrameBytes: MAX_CONTROL_FRAME_BYTES,
    expectPreface: false,
  });
  private readonly decoder = new HeaderDecoder(HEADER_TABLE_BYTES, interpretReplyHead);
  private readonly headerBlock = new HeaderBlockCollector();
  private settingsSeen = false;
  private readonly receiveWindow = new ReceiveWindow();
  /** Request of the DATA frame that is being read; undefined when its content is to be dropped. */
  private dataRequest: PendingRequest | undefined;
  private unreadControlBytes = 0;
  private readonly connectTimer: NodeJS.Timeout;

  /**
   * @param onReady called once, when the server has said its settings and answered a PING
   * @param isForOneRequest ready at the settings: a PING's round trip would be part of the one request's time
   */
  constructor(
    endpoint: Endpoint,
    frames: RequestFrames,
    private readonly owner: ConnectionOwner,
    private readonly onReady: () => void,
    private readonly isForOneRequest = false,
  ) {
    this.socket = openSocket(endpoint, {
      open: () => this.socket.write(greeting()),
      received: (bytes) => this.receive(bytes),
      broken: (reason) => this.close(reason),
    });
    this.flow = new SendFlow(this.socket, frames);
    this.connectTimer = setTimeout(
      () => this.close(`no HTTP/2 answer within ${CONNECT_TIMEOUT_MS} ms`),
      CONNECT_TIMEOUT_MS,
    );
  }

  get isReady(): boolean {
    return this.state === "ready";
  }

  /** Requests waiting or running here. */
  get load(): number {
    return this.flow.load;
  }

  send(request: PendingRequest): void {
    request.connection = this;
    this.flow.add(request);
    if (!this.flow.hasStreamIds) this.drain("its stream ids are used up");
  }

  /** Takes the request off; if the server has seen it, it is told. */
  cancel(request: PendingRequest): void {
    if (this.state === "closed") return;
    if (request.streamId !== 0) this.writeReset(request.streamId, ErrorCode.CANCEL);
    this.forget(request);
  }

  /** Closes at once: requests that the server may have seen fail, others go to the owner. */
  close(reason: string): void {
    if (this.state === "closed") return;
    this.state = "closed";
    clearTimeout(this.connectTimer);
    this.dataRequest = undefined;
    this.socket.destroy();
    const open = this.flow.takeOpen();
    const waiting = this.flow.takeWaiting();
    this.owner.closed(this, reason);
    for (const request of open)
      request.finish(failure(GrpcStatusCode.UNAVAILABLE, `the connection was lost: ${reason}`));
    this.owner.redispatch(waiting);
  }

  frame(type: number, flags: number, streamId: number, payload: Buffer): void {
    if (this.state === "closed") return;
    if (!this.settingsSeen && (type !== FrameType.SETTINGS || (flags & Flag.ACK) !== 0))
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "the server's first frame is not SETTINGS");
    this.headerBlock.check(type, streamId);
    checkFrameRules(type, flags, streamId, payload.length);
    switch (type) {
      case FrameType.HEADERS:
      case FrameType.CONTINUATION: {
        this.expectOpened(streamId, "a header block");
        const complete = this.headerBlock.add(type, flags, streamId, payload);
        if (complete !== null) this.headers(streamId, complete.block, complete.endStream);
        return;
      }
      case FrameType.SETTINGS:
        return this.settings(flags, payload);
      case FrameType.WINDOW_UPDATE:
        return this.windowUpdate(streamId, payload.readUInt32BE(0) & MAX_WINDOW_BYTES);
      case FrameType.PING:
        return this.ping(flags, payload);
      case FrameType.RST_STREAM:
        return this.resetByServer(streamId, payload.readUInt32BE(0));
      case FrameType.GOAWAY:
        return this.goAway(payload);
      default:
        return; // PRIORITY and unknown types ask for nothing (RFC 9113, 4.1)
    }
  }

  dataStart(streamId: number, frameBytes: number): void {
    if (this.state === "closed") return;
    if (!this.settingsSeen)
      throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "the server's first frame is not SETTINGS");
    this.headerBlock.check(FrameType.DATA, streamId);
    this.expectOpened(streamId, "DATA");
    const update = this.receiveWindow.take(frameBytes);
    if (update !== undefined) this.writeControl(update);
    // DATA of a request that has ended may still be under way: dropped.
    this.dataRequest = this.flow.open.get(streamId);
  }

  dataPart(source: Buffer, start: number, end: number): void {
    const request = this.dataRequest;
    if (request !== undefined) this.failOn(request, request.reply.data(source, start, end));
  }

  dataEnd(endStream: boolean): void {
    const request = this.dataRequest;
    if (request === undefined || !endStream) return;
    this.failOn(request, request.reply.end());
    this.finishIfEnded(request);
  }

  private receive(chunk: Buffer): void {
    if (this.state === "closed") return;
    try {
      this.parser.push(chunk);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.socket.write(frame(FrameType.GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(error.code)])));
      this.close(`the server broke HTTP/2 (${errorCodeName(error.code)}): ${error.message}`);
    }
  }

  private headers(streamId: number, block: Buffer, endStream: boolean): void {
    const head = this.decoder.decode(block);
    const request = this.flow.open.get(streamId);
    if (request === undefined) return;
    this.failOn(request, request.reply.head(head, endStream));
    this.finishIfEnded(request);
  }

  private settings(flags: number, payload: Buffer): void {
    if ((flags & Flag.ACK) !== 0) return;
    this.flow.applySettings(payload);
    this.writeControl(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    this.flow.pump();
    if (this.settingsSeen) return;
    this.settingsSeen = true;
    if (this.isForOneRequest) return this.becomeReady();
    // Its answer comes behind any WINDOW_UPDATE that the server sent with its settings: the windows are then known.
    this.writeControl(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
  }

  private ping(flags: number, payload: Buffer): void {
    if ((flags & Flag.ACK) === 0) {
      this.writeControl(frame(FrameType.PING, Flag.ACK, 0, payload));
    } else {
      this.becomeReady();
    }
  }

  private becomeReady(): void {
    if (this.state !== "opening") return;
    clearTimeout(this.connectTimer);
    this.state = "ready";
    this.onReady();
  }

  private windowUpdate(streamId: number, increment: number): void {
    if (streamId === 0) return this.flow.growConnection(increment);
    this.expectOpened(streamId, "WINDOW_UPDATE");
    const request = this.flow.open.get(streamId);
    if (request === undefined) return;
    const code = this.flow.growStream(request, increment);
    if (code === undefined) return;
    const message = `the server's WINDOW_UPDATE of ${increment} broke flow control (${errorCodeName(code)})`;
    this.reset(request, code, failure(GrpcStatusCode.INTERNAL, message));
  }

  private resetByServer(streamId: number, code: number): void {
    this.expectOpened(streamId, "RST_STREAM");
    const request = this.flow.open.get(streamId);
    if (request === undefined) return;
    this.forget(request);
    request.finish(failureOfReset(code));
  }

  private goAway(payload: Buffer): void {
    const lastStreamId = payload.readUInt32BE(0) & MAX_WINDOW_BYTES;
    const code = payload.readUInt32BE(4);
    const detail = payload.subarray(8, 200).toString("utf8");
    const reason = `the server sent GOAWAY ${errorCodeName(code)}${detail === "" ? "" : ` "${detail}"`}`;
    if (this.state === "opening") return this.close(reason);
    const unprocessed = [...this.flow.open.values()].filter(({ streamId }) => streamId > lastStreamId);
    for (const request of unprocessed) this.flow.remove(request);
    const again: PendingRequest[] = [];
    for (const request of unprocessed) {
      if (request.retried) {
        request.finish(
          failure(GrpcStatusCode.UNAVAILABLE, `${reason} again before the request was looked at`),
        );
        continue;
      }
      request.rewind();
      request.retried = true;
      again.push(request);
    }
    this.drain(reason);
    this.owner.redispatch(again);
  }

  private drain(reason: string): void {
    if (this.state === "closed") return;
    const waiting = this.flow.takeWaiting();
    if (this.state !== "draining") {
      this.state = "draining";
      this.owner.draining(this, reason);
    }
    this.owner.redispatch(waiting);
    this.closeIfDrained(reason);
  }

  private closeIfDrained(reason: string): void {
    if (this.state === "draining" && this.flow.open.size === 0) this.close(reason);
  }

  /** The reply broke gRPC's or HTTP/2's rules: the request fails, the connection goes on. */
  private failOn(request: PendingRequest, problem: Failure | undefined): void {
    if (problem !== undefined) this.reset(request, ErrorCode.CANCEL, problem);
  }

  private reset(request: PendingRequest, code: number, outcome: Failure): void {
    this.writeReset(request.streamId, code);
    this.forget(request);
    request.finish(outcome);
  }

  private finishIfEnded(request: PendingRequest): void {
    if (!request.reply.ended || request.isSettled) return;
    // The server answered without reading the whole request: the rest is not sent.
    if (!this.flow.isSent(request)) this.writeReset(request.streamId, ErrorCode.CANCEL);
    this.forget(request);
    request.finish(request.reply.outcome());
  }

  private forget(request: PendingRequest): void {
    if (this.dataRequest === request) this.dataRequest = undefined;
    this.flow.remove(request);
    this.flow.pump();
    this.closeIfDrained("all its requests have ended");
  }

  private writeReset(streamId: number, code: number): void {
    this.writeControl(frame(FrameType.RST_STREAM, 0, streamId, uint32(code)));
  }

  private writeControl(bytes: Buffer): void {
    if (this.state === "closed") return;
    this.unreadControlBytes += bytes.length;
    if (this.unreadControlBytes > MAX_UNREAD_CONTROL_BYTES)
      return this.close("the server does not read what it is told, e.g. answers to its PINGs");
    this.socket.write(bytes, () => {
      this.unreadControlBytes -= bytes.length;
    });
  }

  private expectOpened(streamId: number, what: string): void {
    if (!this.flow.wasOpened(streamId))
      throw new ConnectionError(
        ErrorCode.PROTOCOL_ERROR,
        `the server sent ${what} for stream ${streamId}, which was never opened`,
      );
  }
}
