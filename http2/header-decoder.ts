import hpack from "hpack.js";
import { ConnectionError, ErrorCode } from "./frames";

/** Decoded header fields, names as they came. The last value of a repeated name wins: gRPC repeats none of those that are read here. */
export type HeaderFields = ReadonlyMap<string, string>;

/** Largest decoded header list, octets by RFC 9113's rule (32 more per field). */
const MAX_HEADER_LIST_BYTES = 65_536;
/** Header blocks remembered at most, and their largest size, octets. */
const MAX_MEMO_ENTRIES = 256;
const MAX_MEMO_BLOCK_BYTES = 1024;

/**
 * HPACK decoding of one connection's received blocks, each interpreted as a `Head`. Peers repeat the same block for every request
 * or reply; its interpretation is remembered.
 * That is safe as long as the dynamic table stays as it is: a block that changes the table is never remembered, and makes the
 * decoder forget all others. With a table of 0 octets every block stands for itself.
 */
export class HeaderDecoder<Head> {
  private readonly decoder = hpack.decoder.create();
  private readonly table;
  private readonly memo = new Map<string, Head>();
  private tableChanged = false;

  /**
   * @param tableBytes announced as SETTINGS_HEADER_TABLE_SIZE, octets; the protocol's default is 4,096
   * @param interpret makes of the fields what the caller needs; must not throw
   */
  constructor(
    private readonly tableBytes: number,
    private readonly interpret: (fields: HeaderFields) => Head,
  ) {
    this.table = hpack.table.create({ maxSize: tableBytes });
  }

  /**
   * @throws ConnectionError COMPRESSION_ERROR when the block cannot be decoded: the table is then out of step for good;
   *   ENHANCE_YOUR_CALM when it is too large.
   */
  decode(block: Buffer): Head {
    const key = block.toString("latin1");
    const known = this.memo.get(key);
    if (known !== undefined) return known;
    this.tableChanged = false;
    let head: Head;
    try {
      head = this.interpret(this.decodeBlock(block));
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      throw new ConnectionError(
        ErrorCode.COMPRESSION_ERROR,
        `The header block cannot be decoded: ${String(error)}.`,
      );
    }
    if (this.tableChanged || this.memo.size >= MAX_MEMO_ENTRIES) this.memo.clear();
    if (!this.tableChanged && block.length <= MAX_MEMO_BLOCK_BYTES) this.memo.set(key, head);
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
          this.tableChanged = this.tableBytes > 0;
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
          this.tableChanged = this.tableBytes > 0;
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
