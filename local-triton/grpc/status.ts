import { GrpcStatusCode, type GrpcStatusName } from "../../kserve/status";

export type StatusCode = (typeof GrpcStatusCode)[GrpcStatusName];

/** An answer other than OK. Thrown by handlers and by the model store; the message goes to the client as it is. */
export class StatusError extends Error {
  constructor(
    readonly code: StatusCode,
    message: string,
  ) {
    super(message);
  }
}
