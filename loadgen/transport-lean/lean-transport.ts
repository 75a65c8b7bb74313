/**
 * Transport that costs about as much CPU as a C client: requests framed once, raw sockets, one write a request. HTTP/2's rules are
 * kept in full (flow control, settings, GOAWAY, RST_STREAM); compression is not offered.
 */
import { GrpcStatusCode } from "../../kserve/status";
import { failure } from "../grpc-outcome";
import type { InferOutcome, Transport, TransportOptions } from "../transport";
import { DEFAULT_CONNECTIONS } from "../transport";
import { splitHostPort } from "../host-port";
import { LeanConnection, type ConnectionOwner } from "./connection";
import { OpenRequests } from "./open-requests";
import type { Endpoint } from "./open-socket";
import { PendingRequest } from "./pending-request";
import { RequestFrames } from "./request-frames";

const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;
/** A connection that lived this long is replaced without a pause, milliseconds. */
const STABLE_MS = 1000;

/** A place for one connection: it is opened anew, with growing pauses, when it breaks. */
interface Slot {
  /** Opening or ready. */
  connection: LeanConnection | undefined;
  /** When the connection became ready. */
  readySinceMs: number;
  /** Whether the last attempt or connection ended in a failure, not by GOAWAY. */
  isFailed: boolean;
  /** Pause before the next attempt; doubles until a connection has lived for STABLE_MS. */
  backoffMs: number;
  retryTimer: NodeJS.Timeout | undefined;
}

export class LeanTransport implements Transport, ConnectionOwner {
  private readonly frames: RequestFrames;
  private readonly endpoint: Endpoint;
  private readonly slots: readonly Slot[];
  /** Connections that take no new requests but still have open ones. */
  private readonly drainingConnections = new Set<LeanConnection>();
  /** Requests for which no connection is ready, but one is being opened. */
  private waiting: PendingRequest[] = [];
  private readonly unsettled = new OpenRequests();
  private rotation = 0;
  private lastFailure = "it was never connected";
  private closing = false;
  /** Of `connect`, while it waits. */
  private connecting: { resolve: () => void; reject: (error: Error) => void } | undefined;

  /** @throws RangeError for an address that is no host:port or a pool without payloads */
  constructor(private readonly options: TransportOptions) {
    this.endpoint = { ...splitHostPort(options.address), tls: options.tls };
    if (options.payloads.length === 0) throw new RangeError("a transport needs at least one payload");
    this.frames = new RequestFrames(options.address, options.payloads, options.tls !== undefined);
    this.slots = Array.from({ length: options.connections ?? DEFAULT_CONNECTIONS }, () => ({
      connection: undefined,
      readySinceMs: Infinity,
      isFailed: false,
      backoffMs: FIRST_BACKOFF_MS,
      retryTimer: undefined,
    }));
  }

  get inFlight(): number {
    return this.unsettled.size;
  }

  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.connecting = { resolve, reject };
      for (const slot of this.slots) this.open(slot);
    });
  }

  infer(payloadIndex: number, deadlineMs: number): Promise<InferOutcome> {
    return new Promise((settle) => {
      const request = new PendingRequest(payloadIndex, deadlineMs, settle, this.unsettled);
      if (this.closing) request.finish(failure(GrpcStatusCode.CANCELLED, "the transport was closed"));
      else this.dispatch(request);
    });
  }

  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    this.connecting?.reject(new Error(`the transport to ${this.options.address} was closed`));
    while (this.unsettled.first !== undefined)
      this.unsettled.first.finish(failure(GrpcStatusCode.CANCELLED, "the transport was closed"));
    this.unsettled.close();
    for (const slot of this.slots) {
      clearTimeout(slot.retryTimer);
      slot.connection?.close("the transport was closed");
    }
    for (const connection of [...this.drainingConnections]) connection.close("the transport was closed");
  }

  redispatch(requests: readonly PendingRequest[]): void {
    for (const request of requests) {
      request.rewind();
      if (!request.isSettled) this.dispatch(request);
    }
  }

  draining(connection: LeanConnection, reason: string): void {
    this.drainingConnections.add(connection);
    const slot = this.slotOf(connection);
    if (slot !== undefined) this.replace(slot, reason, false);
  }

  closed(connection: LeanConnection, reason: string): void {
    this.drainingConnections.delete(connection);
    const slot = this.slotOf(connection);
    if (slot === undefined || this.closing) return;
    if (this.connecting !== undefined) {
      this.connecting.reject(new Error(`cannot connect to ${this.options.address}: ${reason}`));
      this.connecting = undefined;
      void this.close();
      return;
    }
    this.replace(slot, reason, true);
    this.failWaitingIfHopeless();
  }

  private slotOf(connection: LeanConnection): Slot | undefined {
    return this.slots.find((slot) => slot.connection === connection);
  }

  private replace(slot: Slot, reason: string, isFailed: boolean): void {
    slot.connection = undefined;
    slot.isFailed = isFailed;
    this.lastFailure = reason;
    const wasStable = performance.now() - slot.readySinceMs >= STABLE_MS;
    if (wasStable) slot.backoffMs = FIRST_BACKOFF_MS;
    const pauseMs = wasStable && !isFailed ? 0 : slot.backoffMs;
    slot.backoffMs = Math.min(MAX_BACKOFF_MS, 2 * slot.backoffMs);
    slot.readySinceMs = Infinity;
    slot.retryTimer = setTimeout(() => this.open(slot), pauseMs);
  }

  private open(slot: Slot): void {
    if (this.closing) return;
    slot.retryTimer = undefined;
    slot.connection = new LeanConnection(this.endpoint, this.frames, this, () => this.ready(slot));
  }

  private ready(slot: Slot): void {
    slot.readySinceMs = performance.now();
    slot.isFailed = false;
    if (this.connecting !== undefined && this.slots.every(({ connection }) => connection?.isReady === true)) {
      this.connecting.resolve();
      this.connecting = undefined;
    }
    const { waiting } = this;
    this.waiting = [];
    for (const request of waiting) if (!request.isSettled) this.dispatch(request);
  }

  private dispatch(request: PendingRequest): void {
    const connection = this.leastLoaded();
    if (connection !== undefined) {
      connection.send(request);
    } else {
      this.waiting.push(request);
      this.failWaitingIfHopeless();
    }
  }

  /** Ready connection with the fewest requests; ties take turns. */
  private leastLoaded(): LeanConnection | undefined {
    let best: LeanConnection | undefined;
    this.rotation = (this.rotation + 1) % this.slots.length;
    for (let i = 0; i < this.slots.length; i++) {
      const { connection } = this.slots[(this.rotation + i) % this.slots.length]!;
      if (connection?.isReady !== true) continue;
      if (best === undefined || connection.load < best.load) best = connection;
    }
    return best;
  }

  /** While every slot pauses after a failure, requests fail at once instead of waiting for their deadline. */
  private failWaitingIfHopeless(): void {
    if (!this.slots.every(({ connection, isFailed }) => connection === undefined && isFailed)) return;
    const { waiting } = this;
    this.waiting = [];
    const message = `no connection to ${this.options.address}: ${this.lastFailure}`;
    for (const request of waiting) request.finish(failure(GrpcStatusCode.UNAVAILABLE, message));
  }
}
