/**
 * Header fields as HPACK literals without indexing and without Huffman coding (RFC 7541, 6.2.2): they depend on no table, so a
 * block made of them can be encoded once and sent on every connection.
 */

/** An integer with a 7-bit prefix (RFC 7541, 5.1). */
function prefixed7(value: number): Buffer {
  if (value < 127) return Buffer.from([value]);
  const octets = [127];
  let rest = value - 127;
  for (; rest >= 128; rest >>>= 7) octets.push((rest & 0x7f) | 0x80);
  octets.push(rest);
  return Buffer.from(octets);
}

/** One header field; name and value must be Latin-1. */
export function literal(name: string, value: string): Buffer {
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
