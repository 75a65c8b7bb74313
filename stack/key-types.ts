/**
 * Kinds of configuration keys. Pulumi hands every value over as text (objects and lists as JSON), so each kind knows how to
 * read text and says what is wrong in words that follow the key's name.
 */

/** Types that Pulumi.yaml can declare; null for a key that takes a name or an object, which it cannot. */
export type PulumiType = "string" | "integer" | "boolean" | "array" | "object" | null;

export interface KeySpec<T> {
  readonly type: PulumiType;
  /** As it stands in Pulumi.yaml. */
  readonly default: unknown;
  readonly description: string;
  /** @throws KeyValueError with what is wrong and how to fix it */
  readonly read: (text: string) => T;
}

/** A value that a key cannot have. */
export class KeyValueError extends Error {
  override readonly name = "KeyValueError";
}

/** Free text; "" means not set where the description says so. */
export function text(byDefault: string, description: string): KeySpec<string> {
  return { type: "string", default: byDefault, description, read: (value) => value.trim() };
}

/** One of a few words. */
export function choice<T extends string>(
  choices: readonly T[],
  byDefault: T,
  description: string,
): KeySpec<T> {
  const read = (value: string): T => {
    const found = choices.find((candidate) => candidate === value.trim());
    if (found !== undefined) return found;
    throw new KeyValueError(`"${value}" is none of ${choices.join(", ")}; use one of them`);
  };
  return { type: "string", default: byDefault, description, read };
}

/** A whole number within bounds. */
export function integer(min: number, max: number, byDefault: number, description: string): KeySpec<number> {
  const read = (value: string): number => {
    const number = /^-?\d+$/.test(value.trim()) ? Number(value) : Number.NaN;
    if (!Number.isInteger(number))
      throw new KeyValueError(`"${value}" is not a whole number; use ${min} to ${max}`);
    if (number < min || number > max)
      throw new KeyValueError(`${number} is out of range; use ${min} to ${max}`);
    return number;
  };
  return { type: "integer", default: byDefault, description, read };
}

export function flag(byDefault: boolean, description: string): KeySpec<boolean> {
  const read = (value: string): boolean => {
    if (value === "true") return true;
    if (value === "false") return false;
    throw new KeyValueError(`"${value}" is neither true nor false`);
  };
  return { type: "boolean", default: byDefault, description, read };
}

/** A list of texts. */
export function list(byDefault: readonly string[], description: string): KeySpec<readonly string[]> {
  const read = (value: string): readonly string[] => {
    const parsed = json(value, 'a list, e.g. ["a", "b"]');
    if (Array.isArray(parsed) && parsed.every((item) => typeof item === "string")) return parsed;
    throw new KeyValueError(`${value} is not a list of texts; use e.g. ["a", "b"]`);
  };
  return { type: "array", default: byDefault, description, read };
}

/** Texts by name. */
export function map(description: string): KeySpec<Readonly<Record<string, string>>> {
  const read = (value: string): Readonly<Record<string, string>> => {
    const parsed = json(value, 'an object, e.g. {"team": "vision"}');
    const isMap = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    if (isMap && Object.values(parsed).every((item) => typeof item === "string")) {
      return parsed as Record<string, string>;
    }
    throw new KeyValueError(`${value} is not an object of texts; use e.g. {"team": "vision"}`);
  };
  return { type: "object", default: {}, description, read };
}

/** A catalogue name, or an object; checked later by who knows variants. */
export function nameOrObject(byDefault: string, description: string): KeySpec<unknown> {
  const read = (value: string): unknown =>
    looksLikeJson(value) ? json(value, "a name or an object") : value.trim();
  return { type: null, default: byDefault, description, read };
}

/** A list whose items are catalogue names or objects. */
export function namesOrObjects(
  byDefault: readonly string[],
  description: string,
): KeySpec<readonly unknown[]> {
  const read = (value: string): readonly unknown[] => {
    const parsed = json(value, "a list of names or objects");
    if (Array.isArray(parsed)) return parsed as unknown[];
    throw new KeyValueError(`${value} is not a list; use e.g. ["original", "tftrt_fp16"]`);
  };
  return { type: null, default: byDefault, description, read };
}

function looksLikeJson(value: string): boolean {
  return /^\s*[[{]/.test(value);
}

function json(value: string, expected: string): unknown {
  try {
    return JSON.parse(value) as unknown;
  } catch (error) {
    throw new KeyValueError(`is not ${expected}: ${(error as Error).message}`);
  }
}
