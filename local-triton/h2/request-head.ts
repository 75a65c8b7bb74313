import type { HeaderFields } from "../../http2/header-decoder";

/** Announced as SETTINGS_HEADER_TABLE_SIZE: the protocol's default, octets. */
export const HEADER_TABLE_BYTES = 4096;
const PSEUDO_HEADERS: ReadonlySet<string> = new Set([":method", ":path", ":scheme", ":authority"]);

export interface RequestHead {
  readonly fields: HeaderFields;
  /** Names in lower case, and the pseudo-header fields of a request (RFC 9113, 8.2 and 8.3). */
  readonly wellFormed: boolean;
}

export function readRequestHead(fields: HeaderFields): RequestHead {
  let wellFormed = fields.has(":method") && fields.has(":path") && fields.has(":scheme");
  for (const name of fields.keys()) {
    if (name !== name.toLowerCase()) wellFormed = false;
    if (name.startsWith(":") && !PSEUDO_HEADERS.has(name)) wellFormed = false;
  }
  return { fields, wellFormed };
}
