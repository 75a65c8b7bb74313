/** Token cursor and scalar values of protobuf's text format. */
import { didYouMean } from "./nearest-name";
import { Lexer, PbtxtError, type Token } from "./pbtxt-lexer";

/** Int64 and uint64 are read as numbers, so beyond 2^53 they are refused rather than rounded. */
const integerRanges: Readonly<Record<string, readonly [number, number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};
const trueWords = ["true", "True", "t", "1"];
const falseWords = ["false", "False", "f", "0"];

/** Digits of an integer token: decimal, 0x hexadecimal or 0 octal. */
function integerValue(text: string): number {
  return /^0\d/.test(text) ? parseInt(text, 8) : Number(text);
}

export class TokenCursor {
  token: Token;
  private readonly lexer: Lexer;

  constructor(
    text: string,
    private readonly file: string,
  ) {
    this.lexer = new Lexer(text, file);
    this.token = this.lexer.next();
  }

  fail(problem: string, at: Token = this.token): never {
    throw new PbtxtError(this.file, at.line, at.column, problem);
  }

  /** The current token as a message quotes it. */
  shown(): string {
    return this.token.kind === "end" ? "the end of the file" : JSON.stringify(this.token.text);
  }

  take(): Token {
    const { token } = this;
    this.token = this.lexer.next();
    return token;
  }

  isSymbol(text: string): boolean {
    return this.token.kind === "symbol" && this.token.text === text;
  }

  takeSymbol(text: string): boolean {
    const found = this.isSymbol(text);
    if (found) this.take();
    return found;
  }

  /** One or more adjacent strings, concatenated. */
  string(field: string): string {
    if (this.token.kind !== "string") this.fail(`${field} takes a quoted string, not ${this.shown()}`);
    let value = "";
    while (this.token.kind === "string") value += this.take().text;
    return value;
  }

  boolean(field: string): boolean {
    const { kind, text } = this.token;
    const known = kind === "identifier" || kind === "integer";
    if (!known || !(trueWords.includes(text) || falseWords.includes(text)))
      this.fail(`${field} takes true or false, not ${this.shown()}`);
    return trueWords.includes(this.take().text);
  }

  integer(field: string, type: string): number {
    const start = this.token;
    const sign = this.takeSymbol("-") ? -1 : 1;
    if (this.token.kind !== "integer") this.fail(`${field} takes an integer, not ${this.shown()}`);
    const value = sign * integerValue(this.take().text);
    const [low, high] = integerRanges[type] as readonly [number, number];
    if (value < low || value > high)
      this.fail(`${field}: ${value} is outside ${type} (${low} to ${high})`, start);
    return value === 0 ? 0 : value;
  }

  real(field: string): number {
    const sign = this.takeSymbol("-") ? -1 : 1;
    const { kind, text } = this.token;
    if (kind === "integer") return sign * integerValue(this.take().text);
    if (kind === "float") return sign * Number(this.take().text.replace(/[fF]$/, ""));
    if (kind === "identifier" && /^inf(inity)?$/i.test(text)) return (this.take(), sign * Infinity);
    if (kind === "identifier" && /^nan$/i.test(text)) return (this.take(), NaN);
    return this.fail(`${field} takes a number, not ${this.shown()}`);
  }

  /** An enum's value by name or by number. */
  enumerator(field: string, type: string, names: readonly string[]): string {
    const { kind, text } = this.token;
    const name = kind === "identifier" ? text : kind === "integer" ? names[integerValue(text)] : undefined;
    if (name === undefined || !names.includes(name)) {
      const hint =
        kind === "string" ? "; names of values are written without quotes" : didYouMean(text, names);
      this.fail(
        `${field}: ${type} has no value ${this.shown()}${hint || `; it is one of ${names.join(", ")}`}`,
      );
    }
    this.take();
    return name;
  }
}
