/** What the scoreboard keeps in files, as long as the code that it follows from is the same: truths, and finished sweeps. */
import { createHash } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(__dirname, "..");

/** Truths by key, kept in a file as long as the code that they follow from is the same. */
export class TruthCache {
  private readonly known = new Map<string, unknown>();
  private added: (readonly [string, unknown])[] = [];

  /**
   * @param path null: nothing is kept
   * @param tag of the code that defines worlds and truths
   */
  constructor(
    private readonly path: string | null,
    private readonly tag: string,
  ) {
    if (path === null) return;
    for (const line of linesOf(path)) {
      const [of, key, value] = JSON.parse(line) as [string, string, unknown];
      if (of === tag) this.known.set(key, value);
    }
  }

  get<Value>(key: string, make: () => Value): Value {
    if (!this.known.has(key)) this.put(key, make());
    return this.known.get(key) as Value;
  }

  put(key: string, value: unknown): void {
    if (this.known.has(key)) return;
    this.known.set(key, value);
    this.added.push([key, value]);
    // At once: a run may be interrupted.
    if (this.path !== null) appendFileSync(this.path, this.lineOf(key, value));
  }

  /** All about one world. */
  of(seed: number): (readonly [string, unknown])[] {
    return [...this.known].filter(([key]) => key.startsWith(`${seed}:`));
  }

  /** What was added since the last call. */
  takeAdded(): (readonly [string, unknown])[] {
    const { added } = this;
    this.added = [];
    return added;
  }

  forget(): void {
    this.known.clear();
    this.tidy();
  }

  /** Drops from the file what belongs to other code. */
  tidy(): void {
    if (this.path === null) return;
    writeFileSync(this.path, [...this.known].map(([key, value]) => this.lineOf(key, value)).join(""));
  }

  private lineOf(key: string, value: unknown): string {
    return `${JSON.stringify([this.tag, key, value])}\n`;
  }
}

/** Lines of a file; none when it is not there. */
export function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Finished sweeps, a line each, as long as the code is the same. */
export class WorkFile<Done extends { readonly seed: number }> {
  readonly done = new Map<number, Done>();

  constructor(
    private readonly path: string,
    private readonly tag: string,
  ) {
    for (const line of linesOf(path)) {
      const [tag, done] = JSON.parse(line) as [string, Done];
      if (tag === this.tag) this.done.set(done.seed, done);
    }
  }

  add(done: Done): void {
    this.done.set(done.seed, done);
    appendFileSync(this.path, `${JSON.stringify([this.tag, done])}\n`);
  }

  forget(): void {
    this.done.clear();
    writeFileSync(this.path, "");
  }
}

/** Hash of this code: folders and single files, from the root of the project. */
export function tagOf(folders: readonly string[], files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const folder of folders) {
    const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
    for (const name of names.filter((any) => any.endsWith(".ts")).sort())
      hash.update(name).update(readFileSync(join(root, folder, name)));
  }
  for (const file of files) hash.update(readFileSync(join(root, file)));
  return hash.digest("hex").slice(0, 16);
}
