/**
 * gRPC status codes (google.golang.org/grpc/codes; https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
 */
export const GrpcStatusCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcStatusName = keyof typeof GrpcStatusCode;

const names = new Map<number, GrpcStatusName>(
  Object.entries(GrpcStatusCode).map(([name, code]) => [code, name as GrpcStatusName]),
);

/** The code's name, e.g. 14 -> `UNAVAILABLE`; `CODE_<n>` for a number that gRPC does not define. */
export function grpcStatusName(code: number): string {
  return names.get(code) ?? `CODE_${code}`;
}
