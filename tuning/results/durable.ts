/** Files that are whole or absent, also after a power cut. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fsError } from "./results-error";

/**
 * Writes a text so that a reader sees the old content or the new one, never a part: temporary file, fsync, rename, fsync of
 * the folder. Makes the folder when it is missing. @throws ResultsError
 */
export function writeFileAtomic(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    mkdirSync(dirname(path), { recursive: true });
    const file = openSync(temporary, "w");
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    syncFolder(dirname(path));
  } catch (error) {
    discard(temporary);
    throw fsError(error, `write ${path}`);
  }
}

function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // Where nothing can be written, nothing can be removed either; the first error says why.
  }
}

/** Makes the folder's entries durable; needed after a file was created or renamed in it. */
export function syncFolder(path: string): void {
  // Windows cannot open a folder for fsync, and needs none.
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
