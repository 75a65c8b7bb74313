/** What exists in the pretended cloud, kept on disk so that it outlives every engine process, and what goes wrong in it. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** Plain JSON values: inputs without secret marks, outputs. */
export type Values = Record<string, unknown>;

/** A thing that exists. */
export interface Thing {
  type: string;
  id: string;
  /** Name of the resource in the program that made it. */
  logicalName: string;
  inputs: Values;
  computed: Values;
  /** Set when creation left it broken, as a stockout does to a node pool. */
  broken?: string;
}

export type Operation = "create" | "update" | "delete" | "read";

/** How Google refuses or delays. */
export type FailureKind = "quota" | "stockout" | "api-disabled" | "permission-denied" | "slow";

/** A failure on demand. */
export interface Failure {
  kind: FailureKind;
  /** Resource type token. */
  type: string;
  operation?: Operation;
  /** Only resources whose logical name matches. */
  name?: RegExp;
  /** How often it happens; default: until it is removed. */
  times?: number;
  /** For `slow`. */
  delayMs?: number;
}

/** One call that changed something. */
export interface LogEntry {
  operation: Operation;
  type: string;
  logicalName: string;
  id: string;
}

/** The pretended cloud. */
export class World {
  private things: Thing[] = [];
  private failures: Failure[] = [];
  private readonly running: string[] = [];
  /** Calls that changed something, in order. */
  readonly log: LogEntry[] = [];

  /** @param file state on disk; read when it exists */
  constructor(
    private readonly file: string,
    readonly project: string = "test-project",
    readonly projectNumber: string = "123456789012",
  ) {
    mkdirSync(dirname(file), { recursive: true });
    if (existsSync(file)) this.things = JSON.parse(readFileSync(file, "utf8")) as Thing[];
  }

  all(type?: string): readonly Thing[] {
    return type === undefined ? this.things : this.things.filter((thing) => thing.type === type);
  }

  find(type: string, id: string): Thing | undefined {
    return this.things.find((thing) => thing.type === type && thing.id === id);
  }

  /** The one thing of a type with this value in its inputs or computed outputs. */
  where(type: string, key: string, value: unknown): Thing | undefined {
    return this.all(type).find((thing) => thing.inputs[key] === value || thing.computed[key] === value);
  }

  put(thing: Thing): void {
    this.things = [
      ...this.things.filter((other) => other.type !== thing.type || other.id !== thing.id),
      thing,
    ];
    this.save();
  }

  remove(thing: Thing): void {
    this.things = this.things.filter((other) => other.type !== thing.type || other.id !== thing.id);
    this.save();
  }

  /** From now on this goes wrong. Returns a function that ends it. */
  fail(failure: Failure): () => void {
    const rule = { ...failure };
    this.failures.push(rule);
    return () => {
      this.failures = this.failures.filter((other) => other !== rule);
    };
  }

  /** Whether this goes wrong now. Counts it when it does. */
  failing(kind: FailureKind, operation: Operation, type: string, logicalName: string): Failure | undefined {
    const failure = this.failures.find(
      (rule) =>
        rule.kind === kind &&
        rule.type === type &&
        (rule.operation ?? "create") === operation &&
        (rule.name === undefined || rule.name.test(logicalName)) &&
        (rule.times ?? 1) > 0,
    );
    if (failure?.times !== undefined) failure.times -= 1;
    return failure;
  }

  /** Creations of a type that are under way. */
  pending(type: string): number {
    return this.running.filter((one) => one === type).length;
  }

  /** Counts a creation while it runs. */
  async during<T>(type: string, action: () => Promise<T>): Promise<T> {
    this.running.push(type);
    try {
      return await action();
    } finally {
      this.running.splice(this.running.indexOf(type), 1);
    }
  }

  private save(): void {
    const partial = `${this.file}.partial`;
    writeFileSync(partial, JSON.stringify(this.things, null, 1));
    renameSync(partial, this.file);
  }
}
