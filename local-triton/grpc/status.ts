/** gRPC status codes that this server answers with (google.golang.org/grpc/codes numbering). */
export const Status = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
} as const;

export type StatusCode = (typeof Status)[keyof typeof Status];

/** An answer other than OK. Thrown by handlers and by the model store; the message goes to the client as it is. */
export class StatusError extends Error {
  constructor(
    readonly code: StatusCode,
    message: string,
  ) {
    super(message);
  }
}
