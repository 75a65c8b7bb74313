/** One registered worker as the controller sees it. */
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { heartbeatProblem } from "./check-words";
import type { ControllerMessage, Heartbeat, Register, WorkerMessage } from "./protocol";

/** A worker that says nothing for this long is lost, milliseconds: five missed heartbeats. */
export const HEARTBEAT_TIMEOUT_MS = 5000;

export type WorkerStream = ServerDuplexStream<WorkerMessage, ControllerMessage>;

/** Takes a worker's messages and its loss while it takes part in a measurement. */
export interface SessionListener {
  message(session: WorkerSession, message: WorkerMessage): void;
  lost(session: WorkerSession, reason: string): void;
}

export class WorkerSession {
  listener: SessionListener | undefined;
  /** The newest one. */
  heartbeat: Heartbeat | undefined;
  private silence: NodeJS.Timeout;
  private closed = false;

  constructor(
    readonly register: Register,
    private readonly stream: WorkerStream,
    /** It takes part in nothing more; called once or twice. */
    private readonly onGone: (session: WorkerSession) => void,
  ) {
    this.silence = this.awaitMessage();
  }

  get name(): string {
    return this.register.name;
  }

  say(message: ControllerMessage): void {
    if (!this.closed) this.stream.write(message);
  }

  received(message: WorkerMessage): void {
    if (this.closed) return;
    clearTimeout(this.silence);
    this.silence = this.awaitMessage();
    const heartbeat =
      message.body === "heartbeat"
        ? message.heartbeat
        : message.body === "delta"
          ? message.delta.heartbeat
          : undefined;
    if (heartbeat) {
      const problem = heartbeatProblem(heartbeat);
      if (problem !== undefined) return this.close(`it sent a heartbeat that is none: ${problem}`);
      this.heartbeat = heartbeat;
    }
    if (message.body === "leaving") this.onGone(this);
    this.listener?.message(this, message);
  }

  /** Ends the session; a running measurement loses this worker. */
  close(reason: string): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.silence);
    this.stream.end();
    this.onGone(this);
    this.listener?.lost(this, reason);
  }

  private awaitMessage(): NodeJS.Timeout {
    return setTimeout(
      () => this.close(`it said nothing for ${HEARTBEAT_TIMEOUT_MS / 1000} s`),
      HEARTBEAT_TIMEOUT_MS,
    );
  }
}
