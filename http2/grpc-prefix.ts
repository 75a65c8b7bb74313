/**
 * The five bytes in front of a message in a gRPC body: a flag (0: not compressed) and the message's length
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, Length-Prefixed-Message).
 */

export const GRPC_PREFIX_BYTES = 5;

/** Writes the prefix of an uncompressed message; returns the position behind it. */
export function writeGrpcPrefix(target: Buffer, at: number, messageBytes: number): number {
  target[at] = 0;
  return target.writeUInt32BE(messageBytes, at + 1);
}

/** Length of the message behind the prefix that begins here. */
export function grpcMessageBytes(source: Buffer, at: number): number {
  return source.readUInt32BE(at + 1);
}

/** An uncompressed message as it stands in a body. */
export function withGrpcPrefix(message: Buffer): Buffer {
  const body = Buffer.allocUnsafe(GRPC_PREFIX_BYTES + message.length);
  message.copy(body, writeGrpcPrefix(body, 0, message.length));
  return body;
}
