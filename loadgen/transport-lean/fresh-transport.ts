/** Lean transport that opens a connection for every request and closes it afterwards, as a client does that makes a channel per call. */
import { GrpcStatusCode } from "../../kserve/status";
import { failure } from "../grpc-outcome";
import { splitHostPort } from "../host-port";
import type { InferOutcome, Transport, TransportOptions } from "../transport";
import { LeanConnection, type ConnectionOwner } from "./connection";
import { OpenRequests } from "./open-requests";
import type { Endpoint } from "./open-socket";
import { PendingRequest } from "./pending-request";
import { RequestFrames } from "./request-frames";

export class FreshTransport implements Transport {
  private readonly frames: RequestFrames;
  private readonly endpoint: Endpoint;
  private readonly unsettled = new OpenRequests();
  private closing = false;

  /** @throws RangeError for an address that is no host:port or a pool without payloads */
  constructor(private readonly options: TransportOptions) {
    this.endpoint = { ...splitHostPort(options.address), tls: options.tls };
    if (options.payloads.length === 0) throw new RangeError("a transport needs at least one payload");
    this.frames = new RequestFrames(options.address, options.payloads, options.tls !== undefined);
  }

  get inFlight(): number {
    return this.unsettled.size;
  }

  /** Opens one connection to see that the address answers. */
  connect(): Promise<void> {
    return new Promise((resolve, reject) => {
      const connection: LeanConnection = this.open({
        ready: () => {
          resolve();
          connection.close("it was a trial");
        },
        broken: (reason) => reject(new Error(`cannot connect to ${this.options.address}: ${reason}`)),
      });
    });
  }

  infer(payloadIndex: number, deadlineMs: number): Promise<InferOutcome> {
    return new Promise((settle) => {
      if (this.closing) {
        const late = new PendingRequest(payloadIndex, deadlineMs, settle, this.unsettled);
        late.finish(failure(GrpcStatusCode.CANCELLED, "the transport was closed"));
        return;
      }
      const end = (outcome: InferOutcome): void => {
        settle(outcome);
        connection.close("its request has ended");
      };
      const request = new PendingRequest(payloadIndex, deadlineMs, end, this.unsettled);
      const connection: LeanConnection = this.open({
        ready: () => {
          if (!request.isSettled) connection.send(request);
        },
        broken: (reason) =>
          request.finish(
            failure(GrpcStatusCode.UNAVAILABLE, `no connection to ${this.options.address}: ${reason}`),
          ),
      });
    });
  }

  async close(): Promise<void> {
    this.closing = true;
    while (this.unsettled.first !== undefined)
      this.unsettled.first.finish(failure(GrpcStatusCode.CANCELLED, "the transport was closed"));
    this.unsettled.close();
  }

  private open(listener: { ready: () => void; broken: (reason: string) => void }): LeanConnection {
    const owner: ConnectionOwner = {
      redispatch: (requests) => {
        for (const request of requests)
          request.finish(
            failure(GrpcStatusCode.UNAVAILABLE, "the server refused the new connection's request"),
          );
      },
      draining: () => undefined,
      closed: (_, reason) => listener.broken(reason),
    };
    return new LeanConnection(this.endpoint, this.frames, owner, listener.ready, true);
  }
}
