/**
 * Canonical JSON and its hash: the same value gives the same text on every machine, so a trial is found again by its key.
 *
 * Rules (those of RFC 8785 for the values that occur here):
 * - object members sorted by name, compared by UTF-16 code units, no white space;
 * - members whose value is `undefined` are left out, as JSON.stringify does;
 * - numbers and strings as ECMAScript's JSON.stringify writes them (shortest text that reads back to the same double; -0 is 0);
 * - what JSON cannot carry is an error that names the place: NaN and infinities, bigint, functions, symbols, `undefined` in an
 *   array, objects with a prototype of their own (Date, Map ...). Nothing is silently turned into null.
 */
import { createHash } from "node:crypto";

/** Canonical text of a plain value. @throws TypeError that names the place of a value that JSON cannot carry. */
export function canonicalJson(value: unknown): string {
  return write(value, "$");
}

/** Lower-case hexadecimal SHA-256 of a text (UTF-8) or of bytes. */
export function sha256Hex(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}

function write(value: unknown, place: string): string {
  switch (typeof value) {
    case "string":
    case "boolean":
      return JSON.stringify(value);
    case "number":
      if (!Number.isFinite(value)) throw new TypeError(`${place} is ${value}: JSON has no such number`);
      return JSON.stringify(value);
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return writeArray(value, place);
      return writeObject(value, place);
    default:
      throw new TypeError(`${place} is of type ${typeof value}: JSON cannot carry it`);
  }
}

function writeArray(items: readonly unknown[], place: string): string {
  const texts: string[] = [];
  // Not map(): it would skip holes.
  for (let i = 0; i < items.length; i++) texts.push(write(items[i], `${place}[${i}]`));
  return `[${texts.join(",")}]`;
}

function writeObject(object: object, place: string): string {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null)
    throw new TypeError(`${place} is not a plain object: convert it first`);
  const members = Object.entries(object)
    .filter(([, member]) => member !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${write(member, `${place}.${name}`)}`);
  return `{${members.join(",")}}`;
}
