/** Files that are whole or absent, also after a power cut. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { errorCode, fsError, ResultsError } from "./results-error";

/**
 * Writes a text so that a reader sees the old content or the new one, never a part: temporary file, fsync, rename, fsync of
 * the folder. Makes the folder when it is missing. @throws ResultsError
 */
export function writeFileAtomic(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    makeFolder(dirname(path));
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

/**
 * Makes a folder and those above it that are missing. Node's own recursive mkdir never ends where a file system takes no folders and
 * says that there is no such place, as /proc does. @throws ResultsError
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let folder = resolve(path); !existsSync(folder); folder = dirname(folder)) missing.unshift(folder);
  for (const folder of missing) {
    try {
      mkdirSync(folder);
    } catch (error) {
      const code = errorCode(error);
      // Somebody else was faster.
      if (code === "EEXIST" && statSync(folder).isDirectory()) continue;
      if (code === "ENOENT" && existsSync(dirname(folder)))
        throw new ResultsError(
          "not-writable",
          `cannot make the folder ${path}: no folder can be made in ${dirname(folder)} (${code}). Choose a writable folder with --out DIR.`,
          { cause: error },
        );
      throw fsError(error, `make the folder ${path}`);
    }
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
