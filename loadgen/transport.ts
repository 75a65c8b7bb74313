/**
 * Transport: how one inference request reaches the server and its answer comes back.
 * Two implementations are held to one conformance suite: grpc-js (oracle) and lean pre-framed HTTP/2.
 */

import type { TlsOptions } from "./load-spec";

/** gRPC status codes that the load generator distinguishes (google.golang.org/grpc/codes numbering). */
export const GrpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

/** What came back for one request. */
export interface InferOutcome {
  /** gRPC status; 0 is OK. */
  readonly status: number;
  /** gRPC status message, percent-decoded; empty when OK. */
  readonly message: string;
  /** From the moment the transport took the request to the last byte of its answer, microseconds of wall time. */
  readonly serviceTimeUs: number;
  /** The serialized ModelInferResponse without the 5-byte gRPC prefix; undefined when there is none. */
  readonly reply: Buffer | undefined;
}

/** A connection (or several) to one server address for one model and one payload pool. */
export interface Transport {
  /** Opens and warms all connections. Rejects with an Error that names the address. */
  connect(): Promise<void>;
  /**
   * Sends payload `payloadIndex` of the pool given at construction. Never rejects: every failure is an outcome.
   * `deadlineMs` is wall time from now.
   */
  infer(payloadIndex: number, deadlineMs: number): Promise<InferOutcome>;
  /** Requests sent and not yet answered, including those waiting for a connection's window. */
  readonly inFlight: number;
  close(): Promise<void>;
}

export interface TransportOptions {
  /** host:port of the server's gRPC endpoint. */
  readonly address: string;
  /** Serialized ModelInferRequest messages, without gRPC prefix; requests rotate over them. */
  readonly payloads: readonly Buffer[];
  /** HTTP/2 connections to the address. Default DEFAULT_CONNECTIONS. */
  readonly connections?: number;
  /** Opens a connection for every request and closes it afterwards; then `connections` means nothing. Default false. */
  readonly newConnectionPerRequest?: boolean;
  /** Default: plain text. */
  readonly tls?: TlsOptions;
}

/**
 * HTTP/2 connections to one address: enough that one connection's window or loss does not hold the others up, few enough that
 * a server does not notice.
 */
export const DEFAULT_CONNECTIONS = 4;
