/** The parts of hpack.js (MIT) that the header decoder uses: primitive decoding and the table, without its stream wrapper. */
declare module "hpack.js" {
  export interface TableEntry {
    readonly name: string;
    readonly value: string;
    /** Octets of the name, for the size of table entries made from it. */
    readonly nameSize: number;
  }

  /** Static and dynamic table together, by HPACK index. All methods throw an Error on an offence. */
  export interface Table {
    lookup(index: number): TableEntry;
    add(name: string, value: string, nameSize: number, valueSize: number): void;
    updateSize(bytes: number): void;
  }

  /** Reads from the octets that were pushed. All methods throw when these are malformed or run out. */
  export interface Decoder {
    push(chunk: Buffer): void;
    isEmpty(): boolean;
    decodeBit(): number;
    decodeInt(): number;
    decodeStr(): ArrayLike<number>;
  }

  export const table: { create(options: { maxSize: number }): Table };
  export const decoder: { create(): Decoder };
  export const utils: { stringify(octets: ArrayLike<number>): string };
}
