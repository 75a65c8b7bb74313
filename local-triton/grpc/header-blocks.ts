import type { StatusCode } from "./status";

/**
 * HPACK blocks of gRPC responses, encoded with literals without indexing only (RFC 7541, 6.2.2): they depend on no table, so one
 * constant serves every connection.
 */
const STATUS_200 = Buffer.from([0x88]);

/** An integer with a 7-bit prefix (RFC 7541, 5.1). */
function prefixed7(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const octets = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>>= 7) octets.push((rest & 0x7f) | 0x80);
  octets.push(rest);
  return Buffer.from(octets);
}

function literal(name: string, value: string): Buffer {
  const nameBytes = Buffer.from(name, "latin1");
  const valueBytes = Buffer.from(value, "latin1");
  return Buffer.concat([
    Buffer.from([0]),
    prefixed7(nameBytes.length),
    nameBytes,
    prefixed7(valueBytes.length),
    valueBytes,
  ]);
}

/** Head of a response with a message. */
export const RESPONSE_HEAD = Buffer.concat([STATUS_200, literal("content-type", "application/grpc")]);

/** Trailers of a successful response. */
export const OK_TRAILERS = literal("grpc-status", "0");

/** Head of a response that has no message: status and message at once ("Trailers-Only"). */
export function errorHead(code: StatusCode, message: string): Buffer {
  const parts = [RESPONSE_HEAD, literal("grpc-status", String(code))];
  if (message !== "") parts.push(literal("grpc-message", percentEncode(message)));
  return Buffer.concat(parts);
}

/** Head of an answer to something that is not gRPC. */
export function httpErrorHead(httpStatus: number): Buffer {
  return Buffer.concat([literal(":status", String(httpStatus)), literal("content-length", "0")]);
}

/** gRPC's encoding of grpc-message: UTF-8, everything but printable ASCII and "%" percent-encoded. */
function percentEncode(text: string): string {
  let encoded = "";
  for (const octet of Buffer.from(text)) {
    if (octet >= 0x20 && octet <= 0x7e && octet !== 0x25) encoded += String.fromCharCode(octet);
    else encoded += `%${octet.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}
