/**
 * Tokens of protobuf's text format (https://protobuf.dev/reference/protobuf/textformat-spec/).
 */

/** A text that is no model configuration. Lines and columns count from 1. */
export class PbtxtError extends Error {
  override readonly name = "PbtxtError";
  constructor(
    file: string,
    readonly line: number,
    readonly column: number,
    readonly problem: string,
  ) {
    super(`${file}:${line}:${column}: ${problem}`);
  }
}

export interface Token {
  readonly kind: "identifier" | "integer" | "float" | "string" | "symbol" | "end";
  /** As written; for a string its value with escapes resolved. */
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

const whitespace = /(?:[ \t\r\v\f]|#[^\n]*)+/y;
const identifier = /[A-Za-z_][A-Za-z0-9_]*/y;
const integer = /0[xX][0-9A-Fa-f]+|\d+/y;
const float = /(?:\d+\.\d*|\.\d+|\d+(?=[eEfF]))(?:[eE][+-]?\d+)?[fF]?/y;
const quoted = /"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'/y;
const wordEnd = /[A-Za-z0-9_.]/y;
const symbols = new Set("{}<>[]:;,-");

const simpleEscapes: Readonly<Record<string, number>> = {
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
  "\\": 92,
  "'": 39,
  '"': 34,
  "?": 63,
};
const escape =
  /\\(?:([abfnrtv\\'"?])|([0-7]{1,3})|[xX]([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))/y;

export class Lexer {
  private position = 0;
  private line = 1;
  private lineStart = 0;

  constructor(
    private readonly text: string,
    private readonly file: string,
  ) {
    if (text.startsWith("\uFEFF")) this.position = this.lineStart = 1;
  }

  private match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text)?.[0];
    if (found !== undefined) this.position += found.length;
    return found;
  }

  private fail(problem: string, position: number): never {
    throw new PbtxtError(this.file, this.line, position - this.lineStart + 1, problem);
  }

  /** The next token; at the end of the text always `end`. */
  next(): Token {
    this.skipWhitespace();
    const start = this.position;
    const at = { line: this.line, column: start - this.lineStart + 1 };
    const character = this.text[start];
    if (character === undefined) return { kind: "end", text: "end of file", ...at };
    const word = this.match(identifier);
    if (word !== undefined) return { kind: "identifier", text: word, ...at };
    if (character === '"' || character === "'") return { kind: "string", text: this.string(start), ...at };
    if (/[\d.]/.test(character)) return { ...this.number(start), ...at };
    if (!symbols.has(character)) this.fail(`unexpected character ${JSON.stringify(character)}`, start);
    this.position++;
    return { kind: "symbol", text: character, ...at };
  }

  private skipWhitespace(): void {
    for (;;) {
      this.match(whitespace);
      if (this.text[this.position] !== "\n") return;
      this.position++;
      this.line++;
      this.lineStart = this.position;
    }
  }

  private number(start: number): Pick<Token, "kind" | "text"> {
    const hexadecimal = /^0[xX]/.test(this.text.slice(start, start + 2));
    const fraction = hexadecimal ? undefined : this.match(float);
    const text = fraction ?? this.match(integer);
    wordEnd.lastIndex = this.position;
    if (text === undefined || wordEnd.test(this.text)) this.fail("malformed number", start);
    if (fraction === undefined && /^0\d*[89]/.test(text))
      this.fail("a number that starts with 0 is octal", start);
    return { kind: fraction === undefined ? "integer" : "float", text };
  }

  private string(start: number): string {
    const literal = this.match(quoted);
    if (literal === undefined) this.fail("the string has no closing quote on its line", start);
    const body = literal.slice(1, -1);
    return body.includes("\\") ? this.unescape(body, start + 1) : body;
  }

  /** Escapes may spell single bytes of UTF-8, so the value is built from bytes. */
  private unescape(body: string, start: number): string {
    const parts: Buffer[] = [];
    for (let index = 0; index < body.length;) {
      const backslash = body.indexOf("\\", index);
      const stop = backslash < 0 ? body.length : backslash;
      parts.push(Buffer.from(body.slice(index, stop), "utf8"));
      if (backslash < 0) break;
      escape.lastIndex = backslash;
      const found = escape.exec(body);
      if (found === null)
        this.fail(
          `unknown escape ${JSON.stringify(body.slice(backslash, backslash + 2))}`,
          start + backslash,
        );
      parts.push(this.escaped(found, start + backslash));
      index = backslash + found[0].length;
    }
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(parts));
    } catch {
      return this.fail("the string's escapes are not valid UTF-8", start);
    }
  }

  private escaped([, simple, octal, hexadecimal, short, long]: RegExpExecArray, at: number): Buffer {
    if (simple !== undefined) return Buffer.from([simpleEscapes[simple] as number]);
    const byte =
      octal !== undefined ? parseInt(octal, 8) : hexadecimal !== undefined ? parseInt(hexadecimal, 16) : null;
    if (byte !== null)
      return byte > 255 ? this.fail("an octal escape is above \\377", at) : Buffer.from([byte]);
    const codePoint = parseInt(short ?? (long as string), 16);
    if (codePoint > 0x10ffff || (codePoint >= 0xd800 && codePoint <= 0xdfff))
      this.fail("the escape is no Unicode character", at);
    return Buffer.from(String.fromCodePoint(codePoint), "utf8");
  }
}
