/**
 * Transport over @grpc/grpc-js: the oracle that the lean one is compared with. Messages are pre-encoded; grpc-js still copies each
 * once to prepend its prefix.
 */
import {
  Client,
  credentials,
  Metadata,
  type ChannelCredentials,
  type ChannelOptions,
  type ClientUnaryCall,
  type ServiceError,
} from "@grpc/grpc-js";
import { GrpcStatusCode } from "../kserve/status";
import { DEFAULT_CONNECTIONS, type InferOutcome, type Transport, type TransportOptions } from "./transport";

const inferPath = "/inference.GRPCInferenceService/ModelInfer";
const CONNECT_TIMEOUT_MS = 5000;

/**
 * Each channel has a connection of its own (by default channels to one address share it). No retries: a hidden resend would be a
 * request that nobody planned. No lookup of a service config, which is a DNS query. Keepalive stays off: servers answer pings more
 * often than every five minutes with GOAWAY too_many_pings.
 */
const channelOptions = {
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.max_send_message_length": -1,
};

function credentialsOf({ tls }: TransportOptions): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  return credentials.createSsl(tls.caPem === "" ? null : Buffer.from(tls.caPem));
}

/** The name that the certificate must have, if it is another than the address's. */
function nameOf({ tls }: TransportOptions): ChannelOptions {
  return tls === undefined || tls.serverName === ""
    ? {}
    : { "grpc.ssl_target_name_override": tls.serverName };
}

const identity = (bytes: Buffer): Buffer => bytes;

interface Channel {
  readonly client: Client;
  inFlight: number;
}

export class GrpcJsTransport implements Transport {
  private readonly channels: readonly Channel[];
  private rotation = 0;
  private readonly calls = new Set<ClientUnaryCall>();
  private open = 0;
  private isClosed = false;

  /** @throws RangeError for a pool without payloads */
  constructor(private readonly options: TransportOptions) {
    if (options.payloads.length === 0) throw new RangeError("a transport needs at least one payload");
    const connections =
      options.newConnectionPerRequest === true ? 0 : (options.connections ?? DEFAULT_CONNECTIONS);
    this.channels = Array.from({ length: connections }, () => this.openChannel());
  }

  get inFlight(): number {
    return this.open;
  }

  async connect(): Promise<void> {
    const deadline = Date.now() + CONNECT_TIMEOUT_MS;
    // Where every request brings its own connection, one shows that the address answers.
    const trial = this.channels.length === 0 ? [this.openChannel()] : [];
    try {
      await Promise.all(
        [...this.channels, ...trial].map(
          ({ client }) =>
            new Promise<void>((resolve, reject) =>
              client.waitForReady(deadline, (error) => (error === undefined ? resolve() : reject(error))),
            ),
        ),
      );
    } catch (error) {
      await this.close();
      throw new Error(
        `cannot connect to ${this.options.address} within ${CONNECT_TIMEOUT_MS} ms: ${(error as Error).message}`,
      );
    } finally {
      for (const { client } of trial) client.close();
    }
  }

  infer(payloadIndex: number, deadlineMs: number): Promise<InferOutcome> {
    const payload = this.options.payloads[payloadIndex];
    if (payload === undefined)
      throw new RangeError(
        `there is no payload ${payloadIndex}: the pool has ${this.options.payloads.length}`,
      );
    const isFresh = this.channels.length === 0;
    const channel = isFresh ? this.openChannel() : this.leastLoaded();
    channel.inFlight++;
    this.open++;
    const startedMs = performance.now();
    return new Promise((resolve) => {
      let call: ClientUnaryCall | undefined;
      const settle = (error: ServiceError | null, reply?: Buffer): void => {
        const serviceTimeUs = (performance.now() - startedMs) * 1000;
        channel.inFlight--;
        this.open--;
        if (call !== undefined) this.calls.delete(call);
        if (isFresh) channel.client.close();
        resolve(
          error === null
            ? { status: GrpcStatusCode.OK, message: "", serviceTimeUs, reply }
            : { status: error.code, message: error.details, serviceTimeUs, reply: undefined },
        );
      };
      if (this.isClosed)
        return settle({
          code: GrpcStatusCode.CANCELLED,
          details: "the transport was closed",
        } as ServiceError);
      const deadline = new Date(Date.now() + deadlineMs);
      try {
        call = channel.client.makeUnaryRequest(
          inferPath,
          identity,
          identity,
          payload,
          new Metadata(),
          { deadline },
          settle,
        );
        this.calls.add(call);
      } catch (error) {
        // grpc-js throws when the channel was closed
        settle({
          code: GrpcStatusCode.CANCELLED,
          details: (error as Error).message,
        } as ServiceError);
      }
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    for (const call of this.calls) call.cancel();
    for (const { client } of this.channels) client.close();
  }

  private openChannel(): Channel {
    const { options } = this;
    const client = new Client(options.address, credentialsOf(options), {
      ...channelOptions,
      ...nameOf(options),
    });
    return { client, inFlight: 0 };
  }

  /** Channel with the fewest requests; ties take turns. */
  private leastLoaded(): Channel {
    this.rotation = (this.rotation + 1) % this.channels.length;
    let best = this.channels[this.rotation]!;
    for (const channel of this.channels) if (channel.inFlight < best.inFlight) best = channel;
    return best;
  }
}
