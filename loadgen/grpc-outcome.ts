/** How failures below gRPC become gRPC statuses, the same for every transport. */
import { ErrorCode, errorCodeName } from "../http2/frames";
import { GrpcStatusCode } from "../kserve/status";

/** Status and message of a failed request. */
export interface Failure {
  readonly status: number;
  readonly message: string;
}

export function failure(status: number, message: string): Failure {
  return { status, message };
}

/** Statuses of HTTP replies without grpc-status (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md). */
const statusOfHttp = new Map<number, number>([
  [400, GrpcStatusCode.INTERNAL],
  [401, GrpcStatusCode.UNAUTHENTICATED],
  [403, GrpcStatusCode.PERMISSION_DENIED],
  [404, GrpcStatusCode.UNIMPLEMENTED],
  [429, GrpcStatusCode.UNAVAILABLE],
  [502, GrpcStatusCode.UNAVAILABLE],
  [503, GrpcStatusCode.UNAVAILABLE],
  [504, GrpcStatusCode.UNAVAILABLE],
]);

export function failureOfHttpStatus(httpStatus: number): Failure {
  const status = statusOfHttp.get(httpStatus) ?? GrpcStatusCode.UNKNOWN;
  return failure(status, `the server answered with HTTP status ${httpStatus} and no grpc-status`);
}

/** Statuses of RST_STREAM codes (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, "Errors"). */
const statusOfReset = new Map<number, number>([
  [ErrorCode.NO_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.PROTOCOL_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.INTERNAL_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.FLOW_CONTROL_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.SETTINGS_TIMEOUT, GrpcStatusCode.INTERNAL],
  [ErrorCode.FRAME_SIZE_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.REFUSED_STREAM, GrpcStatusCode.UNAVAILABLE],
  [ErrorCode.CANCEL, GrpcStatusCode.CANCELLED],
  [ErrorCode.COMPRESSION_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.CONNECT_ERROR, GrpcStatusCode.INTERNAL],
  [ErrorCode.ENHANCE_YOUR_CALM, GrpcStatusCode.RESOURCE_EXHAUSTED],
  [ErrorCode.INADEQUATE_SECURITY, GrpcStatusCode.PERMISSION_DENIED],
]);

export function failureOfReset(code: number): Failure {
  const status = statusOfReset.get(code) ?? GrpcStatusCode.UNKNOWN;
  return failure(status, `the server reset the stream with ${errorCodeName(code)}`);
}
