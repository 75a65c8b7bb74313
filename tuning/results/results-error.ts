/** Errors about the results folder, in words that say what to do. */

import { z } from "zod";

/** Why the results folder cannot be used. `disk-full` can strike in mid-sweep; the others are found before the first trial. */
export type ResultsErrorKind = "not-writable" | "disk-full" | "in-use" | "corrupt" | "invalid" | "io";

/** A results folder or file that cannot be read or written. The message names the path and the way out. */
export class ResultsError extends Error {
  constructor(
    readonly kind: ResultsErrorKind,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "ResultsError";
  }
}

/**
 * Turns a file-system error into a ResultsError.
 * @param action what was tried, as an infinitive: "write results/x/points.jsonl"
 */
export function fsError(error: unknown, action: string): ResultsError {
  if (error instanceof ResultsError) return error;
  const code = errorCode(error);
  const options = { cause: error };
  switch (code) {
    case "ENOSPC":
    case "EDQUOT":
    case "EFBIG":
      return new ResultsError(
        "disk-full",
        `cannot ${action}: the disk, the quota or the file-size limit is exhausted (${code}). ` +
          `Finished trials are safe; free some space and run again with --resume.`,
        options,
      );
    case "EACCES":
    case "EPERM":
    case "EROFS":
      return new ResultsError(
        "not-writable",
        `cannot ${action}: not permitted (${code}). Choose a writable folder with --out DIR.`,
        options,
      );
    case "ENOTDIR":
    case "EISDIR":
    case "EEXIST":
      return new ResultsError(
        "not-writable",
        `cannot ${action}: a file stands where a folder is needed, or the other way round (${code}). ` +
          `Choose another folder with --out DIR.`,
        options,
      );
    default:
      return new ResultsError("io", `cannot ${action}: ${String(error)}`, options);
  }
}

/** Longer explanations say no more, characters. */
const mostCharacters = 300;

/** An error's own words in one line, without its class. */
export function oneLine(error: unknown): string {
  const text =
    error instanceof z.ZodError
      ? z.prettifyError(error)
      : error instanceof Error
        ? error.message
        : String(error);
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= mostCharacters ? line : `${line.slice(0, mostCharacters)} ...`;
}

/** `code` of a Node system error; null for any other value. */
export function errorCode(error: unknown): string | null {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
}
