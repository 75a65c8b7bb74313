/**
 * Encoding of the grpc-message trailer: UTF-8 with everything but printable ASCII, and the percent sign itself, percent-encoded
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).
 */

export function encodeGrpcMessage(text: string): string {
  let encoded = "";
  for (const octet of Buffer.from(text)) {
    if (octet >= 0x20 && octet <= 0x7e && octet !== 0x25) encoded += String.fromCharCode(octet);
    else encoded += `%${octet.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return encoded;
}

/** Decodes leniently, as the specification asks: what is no valid escape stays as it is. */
export function decodeGrpcMessage(encoded: string): string {
  if (!encoded.includes("%")) return encoded;
  const octets: number[] = [];
  for (let at = 0; at < encoded.length; at++) {
    const escape = /^%[0-9a-f]{2}/i.exec(encoded.slice(at, at + 3));
    if (escape === null) {
      octets.push(encoded.charCodeAt(at) & 0xff);
    } else {
      octets.push(parseInt(escape[0].slice(1), 16));
      at += 2;
    }
  }
  return Buffer.from(octets).toString("utf8");
}
