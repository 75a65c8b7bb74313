import type { InferOutcome } from "../transport";
import { failure, type Failure } from "../grpc-outcome";
import { GrpcStatusCode } from "../../kserve/status";
import type { LeanConnection } from "./connection";
import { Reply } from "./reply";

/** One request from `infer` to its outcome. It may change connections until a server has seen it. */
export class PendingRequest {
  /** Connection that it waits or runs on; undefined while none is ready. */
  connection: LeanConnection | undefined;
  /** 0 until it is sent. */
  streamId = 0;
  /** Bytes of the prefixed message handed to the socket. */
  sentBytes = 0;
  /** Bytes that the stream's window still allows. */
  windowBytes = 0;
  /** Sent again because a GOAWAY said that the server had not looked at it. */
  retried = false;
  reply = new Reply();
  private readonly startedMs = performance.now();
  private readonly timer: NodeJS.Timeout;
  private settled = false;

  constructor(
    readonly payloadIndex: number,
    private readonly deadlineMs: number,
    private readonly settle: (outcome: InferOutcome) => void,
  ) {
    this.timer = setTimeout(() => {
      this.connection?.cancel(this);
      this.finish(failure(GrpcStatusCode.DEADLINE_EXCEEDED, `no answer within ${deadlineMs} ms`));
    }, deadlineMs);
  }

  /** What is left of the deadline, milliseconds. */
  get remainingMs(): number {
    return this.deadlineMs - (performance.now() - this.startedMs);
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

  /** Ends the request; later calls change nothing. */
  finish(result: Buffer | Failure): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    const serviceTimeUs = (performance.now() - this.startedMs) * 1000;
    this.settle(
      Buffer.isBuffer(result)
        ? { status: GrpcStatusCode.OK, message: "", serviceTimeUs, reply: result }
        : { status: result.status, message: result.message, serviceTimeUs, reply: undefined },
    );
  }
}
