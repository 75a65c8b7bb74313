/** Gives each request its address and its image, and judges the reply. */
import { GrpcStatusCode, grpcStatusName } from "../kserve/status";
import { findWrongAnswer } from "./answer-check";
import type { KnownAnswer } from "./load-spec";
import type { SentRequest } from "./send-loop";
import type { InferOutcome, Transport } from "./transport";

/** Class of errors that this process caused, not the server. */
export const CLIENT_ERROR = "client-error";
/** Class of replies with status OK that are not the known answer. */
export const WRONG_ANSWER = "wrong-answer";

/** What grpc-js says when Node's HTTP/2 session is out of its memory limit (grpc-node#2948): the request was never sent. */
const sessionMemoryMessage = /Bandwidth exhausted or memory limit exceeded/;
/** This machine has no more ports or files for connections: happens at hundreds of new connections a second. */
const ownLimitMessage = /\b(EADDRNOTAVAIL|EMFILE|ENFILE|ENOBUFS)\b/;

export interface RequestSenderOptions {
  /** One transport an address; requests take turns over them. */
  readonly transports: readonly { readonly address: string; readonly transport: Transport }[];
  /** Bytes of each payload of the transports' pools; requests rotate over them. */
  readonly payloadBytes: readonly number[];
  /** Known answers by payload; null switches the check off. */
  readonly knownAnswers: readonly KnownAnswer[] | null;
  readonly outputName: string;
  readonly scoreTolerance: number;
  /** Every n-th answered request is checked; 0: none. */
  readonly checkEvery: number;
  /** Number of this worker: workers start at different addresses and images. */
  readonly workerIndex: number;
}

export class RequestSender {
  private sequence: number;
  private answered = 0;
  private bytes = 0;

  constructor(private readonly options: RequestSenderOptions) {
    this.sequence = options.workerIndex;
  }

  /** Message bytes of all requests so far. */
  get bytesSent(): number {
    return this.bytes;
  }

  /** Sends the next request. Never rejects. */
  async send(deadlineMs: number): Promise<SentRequest> {
    const { transports, payloadBytes } = this.options;
    const { address, transport } = transports[this.sequence % transports.length]!;
    // The image moves on after each round over the addresses, so that every address sees every image.
    const payloadIndex = Math.floor(this.sequence / transports.length) % payloadBytes.length;
    this.sequence++;
    this.bytes += payloadBytes[payloadIndex]!;
    const outcome = await transport.infer(payloadIndex, deadlineMs);
    return { serviceTimeUs: outcome.serviceTimeUs, address, error: this.errorOf(outcome, payloadIndex) };
  }

  private errorOf({ status, message, reply }: InferOutcome, payloadIndex: number): SentRequest["error"] {
    if (status !== GrpcStatusCode.OK) return { kind: errorKind(status, message), message };
    const { knownAnswers, checkEvery, outputName, scoreTolerance } = this.options;
    const known = knownAnswers?.[payloadIndex];
    if (known === undefined || checkEvery === 0 || ++this.answered % checkEvery !== 0) return undefined;
    const wrong = findWrongAnswer(reply ?? Buffer.alloc(0), outputName, known, scoreTolerance);
    return wrong === undefined
      ? undefined
      : { kind: WRONG_ANSWER, message: `image ${payloadIndex}: ${wrong}` };
  }
}

/** Class of a failed request: the status's name, or `client-error` when the failure is this process's own. */
export function errorKind(status: number, message: string): string {
  if (status === GrpcStatusCode.RESOURCE_EXHAUSTED && sessionMemoryMessage.test(message)) return CLIENT_ERROR;
  if (status === GrpcStatusCode.UNAVAILABLE && ownLimitMessage.test(message)) return CLIENT_ERROR;
  return grpcStatusName(status);
}
