import hpack from "hpack.js";
import { ConnectionError, ErrorCode } from "./frames";

/** Decoded header fields, names in lower case. The last value of a repeated name wins: gRPC repeats none of those that are read here. */
export type HeaderFields = ReadonlyMap<string, string>;

export interface RequestHead {
  readonly fields: HeaderFields;
  /** Names in lower case, and the pseudo-header fields of a request (RFC 9113, 8.2 and 8.3). */
  readonly wellFormed: boolean;
}

/** Announced as SETTINGS_HEADER_TABLE_SIZE: the protocol's default, octets. */
export const HEADER_TABLE_BYTES = 4096;
/** Largest decoded header list, octets by RFC 9113's rule (32 more per field). */
const MAX_HEADER_LIST_BYTES = 65_536;
/** Header blocks remembered at most. */
const MAX_MEMO_ENTRIES = 256;
const PSEUDO_HEADERS: ReadonlySet<string> = new Set([":method", ":path", ":scheme", ":authority"]);

/**
 * HPACK decoding of one connection's requests. Clients repeat the same block for every request; its decoding is remembered.
 * That is safe as long as the dynamic table stays as it is: a block that changes the table is never remembered, and makes the
 * decoder forget all others.
 */
export class HeaderDecoder {
  private readonly decoder = hpack.decoder.create();
  private readonly table = hpack.table.create({ maxSize: HEADER_TABLE_BYTES });
  private readonly memo = new Map<string, RequestHead>();
  private tableChanged = false;

  /**
   * @throws ConnectionError COMPRESSION_ERROR when the block cannot be decoded: the table is then out of step for good;
   *   ENHANCE_YOUR_CALM when it is too large.
   */
  decode(block: Buffer): RequestHead {
    const key = block.toString("latin1");
    const known = this.memo.get(key);
    if (known !== undefined) return known;
    this.tableChanged = false;
    let head: RequestHead;
    try {
      const fields = this.decodeBlock(block);
      head = { fields, wellFormed: isWellFormed(fields) };
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      throw new ConnectionError(
        ErrorCode.COMPRESSION_ERROR,
        `The header block cannot be decoded: ${String(error)}.`,
      );
    }
    if (this.tableChanged || this.memo.size >= MAX_MEMO_ENTRIES) this.memo.clear();
    if (!this.tableChanged) this.memo.set(key, head);
    return head;
  }

  private decodeBlock(block: Buffer): HeaderFields {
    const { decoder, table } = this;
    const fields = new Map<string, string>();
    let listBytes = 0;
    decoder.push(block);
    while (!decoder.isEmpty()) {
      let name: string;
      let value: string;
      if (decoder.decodeBit() === 1) {
        ({ name, value } = table.lookup(decoder.decodeInt()));
      } else {
        const incremental = decoder.decodeBit() === 1;
        if (!incremental && decoder.decodeBit() === 1) {
          this.tableChanged = true;
          table.updateSize(decoder.decodeInt());
          continue;
        }
        if (!incremental) decoder.decodeBit();
        const index = decoder.decodeInt();
        let nameBytes: number;
        if (index === 0) {
          const octets = decoder.decodeStr();
          nameBytes = octets.length;
          name = hpack.utils.stringify(octets);
        } else {
          ({ name, nameSize: nameBytes } = table.lookup(index));
        }
        const octets = decoder.decodeStr();
        value = hpack.utils.stringify(octets);
        if (incremental) {
          this.tableChanged = true;
          table.add(name, value, nameBytes, octets.length);
        }
      }
      listBytes += name.length + value.length + 32;
      if (listBytes > MAX_HEADER_LIST_BYTES) {
        throw new ConnectionError(
          ErrorCode.ENHANCE_YOUR_CALM,
          `The header list is over ${MAX_HEADER_LIST_BYTES} bytes.`,
        );
      }
      fields.set(name, value);
    }
    return fields;
  }
}

function isWellFormed(fields: HeaderFields): boolean {
  for (const name of fields.keys()) {
    if (name !== name.toLowerCase()) return false;
    if (name.startsWith(":") && !PSEUDO_HEADERS.has(name)) return false;
  }
  return fields.has(":method") && fields.has(":path") && fields.has(":scheme");
}
