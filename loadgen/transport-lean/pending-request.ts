import type { InferOutcome } from "../transport";
import { failure, type Failure } from "../grpc-outcome";
import { GrpcStatusCode } from "../../kserve/status";
import type { LeanConnection } from "./connection";
import type { OpenRequests } from "./open-requests";
import { Reply } from "./reply";

/** One request from `infer` to its outcome. It may change connections until a server has seen it. */
export class PendingRequest {
  /** Connection that it waits or runs on; undefined while none is ready. */
  connection: LeanConnection | undefined = undefined;
  /** 0 until it is sent. */
  streamId = 0;
  /** Bytes of the prefixed message handed to the socket. */
  sentBytes = 0;
  /** Bytes that the stream's window still allows. */
  windowBytes = 0;
  /** Sent again because a GOAWAY said that the server had not looked at it. */
  retried = false;
  reply = new Reply();
  /** Neighbours in the list of open requests, which alone changes them. */
  previous: PendingRequest | undefined = undefined;
  next: PendingRequest | undefined = undefined;
  /** When the deadline is, on the process's clock. */
  readonly dueMs: number;
  private readonly startedMs = performance.now();
  private settled = false;

  /** @param open the transport's open requests: it is one of these from now until it is finished */
  constructor(
    readonly payloadIndex: number,
    private readonly deadlineMs: number,
    private readonly settle: (outcome: InferOutcome) => void,
    private readonly open: OpenRequests,
  ) {
    this.dueMs = this.startedMs + deadlineMs;
    open.add(this);
  }

  /** What is left of the deadline, milliseconds. */
  get remainingMs(): number {
    return this.dueMs - performance.now();
  }

  get isSettled(): boolean {
    return this.settled;
  }

  /** Back to the state before it was sent. */
  rewind(): void {
    this.connection = undefined;
    this.streamId = 0;
    this.sentBytes = 0;
    this.reply = new Reply();
  }

  /** The deadline has passed. */
  expire(): void {
    this.connection?.cancel(this);
    this.finish(failure(GrpcStatusCode.DEADLINE_EXCEEDED, `no answer within ${this.deadlineMs} ms`));
  }

  /** Ends the request; later calls change nothing. */
  finish(result: Buffer | Failure): void {
    if (this.settled) return;
    this.settled = true;
    this.open.remove(this);
    const serviceTimeUs = (performance.now() - this.startedMs) * 1000;
    this.settle(
      Buffer.isBuffer(result)
        ? { status: GrpcStatusCode.OK, message: "", serviceTimeUs, reply: result }
        : { status: result.status, message: result.message, serviceTimeUs, reply: undefined },
    );
  }
}
