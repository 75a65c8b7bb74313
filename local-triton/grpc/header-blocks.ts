import { encodeGrpcMessage } from "../../http2/grpc-message";
import { literal } from "../../http2/literals";
import type { StatusCode } from "./status";

/** HPACK blocks of gRPC responses. They use no table, so one constant serves every connection. */

/** `:status: 200` by its index in the static table. */
const STATUS_200 = Buffer.from([0x88]);

/** Head of a response with a message. */
export const RESPONSE_HEAD = Buffer.concat([STATUS_200, literal("content-type", "application/grpc")]);

/** Trailers of a successful response. */
export const OK_TRAILERS = literal("grpc-status", "0");

/** Head of a response that has no message: status and message at once ("Trailers-Only"). */
export function errorHead(code: StatusCode, message: string): Buffer {
  const parts = [RESPONSE_HEAD, literal("grpc-status", String(code))];
  if (message !== "") parts.push(literal("grpc-message", encodeGrpcMessage(message)));
  return Buffer.concat(parts);
}

/** Head of an answer to something that is not gRPC. */
export function httpErrorHead(httpStatus: number): Buffer {
  return Buffer.concat([literal(":status", String(httpStatus)), literal("content-length", "0")]);
}
