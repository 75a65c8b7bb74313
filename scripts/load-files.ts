/** Files that `npm run load` reads and writes. */
import { open, readFile, stat, unlink, writeFile } from "node:fs/promises";

/** A file that cannot be read or written; the message names it. */
export class FileError extends Error {
  override readonly name = "FileError";
}

export async function read(option: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new FileError(`${option} ${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Whether a file could be written, before hours of measuring; what stands in it stays. @throws FileError */
export async function checkWritable(option: string, file: string): Promise<void> {
  try {
    const wasThere = await stat(file).then(
      () => true,
      () => false,
    );
    await (await open(file, "a")).close();
    if (!wasThere) await unlink(file);
  } catch (error) {
    throw new FileError(`${option} ${file} cannot be written: ${(error as Error).message}`);
  }
}

export async function write(option: string, file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text);
  } catch (error) {
    throw new FileError(`${option} ${file} cannot be written: ${(error as Error).message}`);
  }
}
