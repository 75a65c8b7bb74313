/** What can happen to a process that writes files: it is killed, or a write fails, at its n-th operation on the file system. */
import fs from "node:fs";

export type Accident =
  /** SIGKILL before the operation, or with half of it done where it writes. */
  | { readonly kind: "killed"; readonly at: number; readonly halfway: boolean }
  /** This operation that writes, and all later ones, fail. */
  | { readonly kind: "failing"; readonly at: number; readonly code: "ENOSPC" | "EROFS" };

/** Operations that change files; `text` is the argument that carries what is written. */
const operations: readonly { readonly name: keyof typeof fs; readonly text: number | null }[] = [
  { name: "mkdirSync", text: null },
  { name: "openSync", text: null },
  { name: "writeFileSync", text: 1 },
  { name: "writeSync", text: 1 },
  { name: "fsyncSync", text: null },
  { name: "ftruncateSync", text: null },
  { name: "renameSync", text: null },
  { name: "rmSync", text: null },
  { name: "rmdirSync", text: null },
];
/** A full disk still lets files be made shorter and removed. */
const needSpace = ["mkdirSync", "openSync", "writeFileSync", "writeSync", "fsyncSync"];

/** From now on operations are counted, and the accident happens at its time. @returns reads the count */
export function prepare(accident: Accident | null): () => number {
  let count = 0;
  const table = fs as unknown as Record<string, (...words: unknown[]) => unknown>;
  for (const { name, text } of operations) {
    const original = table[name]!;
    table[name] = (...words) => {
      count++;
      if (accident?.kind === "killed" && count === accident.at) {
        if (accident.halfway && text !== null) original(...half(words, text));
        process.kill(process.pid, "SIGKILL");
      }
      if (accident?.kind === "failing" && count >= accident.at && fails(name, accident.code)) {
        throw Object.assign(new Error(`${accident.code}: ${name}`), { code: accident.code });
      }
      return original(...words);
    };
  }
  return () => count;
}

function fails(name: string, code: string): boolean {
  return code === "EROFS" || needSpace.includes(name);
}

function half(words: readonly unknown[], at: number): unknown[] {
  return words.map((word, index) => {
    if (index !== at) return word;
    const bytes = Buffer.from(word as string | Buffer);
    return bytes.subarray(0, Math.floor(bytes.length / 2));
  });
}
