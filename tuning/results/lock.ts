/**
 * One writer a results folder: a lock file that names the process which holds it. A lock whose process is gone (killed, power
 * cut) is stale and taken over with a note.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { errorCode, fsError, ResultsError } from "./results-error";

/** Name of the lock file in the results folder. */
export const lockFileName = "sweep.lock";

/** A lock without content, or a takeover, that is younger than this is going on; an older one was killed. It takes milliseconds. */
const youngLockMs = 5_000;

const holderSchema = z.object({
  pid: z.number().int().positive(),
  host: z.string(),
  lockedAt: z.string(),
  /** Start of the process in the operating system's own words; tells a reused pid from the holder. Null when unknown. */
  processStart: z.string().nullable(),
});
type Holder = z.infer<typeof holderSchema>;

export interface FolderLock {
  /** What the user should know, e.g. that a stale lock was taken over. */
  readonly notes: readonly string[];
  release(): void;
}

/** @throws ResultsError `in-use` when another process writes into the folder, `not-writable` when nobody can. */
export function lockFolder(folder: string): FolderLock {
  const path = join(folder, lockFileName);
  const mine: Holder = {
    pid: process.pid,
    host: hostname(),
    lockedAt: new Date().toISOString(),
    processStart: processStart(process.pid),
  };
  const notes: string[] = [];
  if (!create(path, mine)) notes.push(takeOver(path, mine));
  return {
    notes,
    release: () => {
      try {
        const holder = read(path);
        if (holder !== null && isSame(holder, mine)) rmSync(path, { force: true });
      } catch {
        // A folder that cannot be written any more: the lock stays and is stale when this process has ended.
      }
    },
  };
}

/** False when there is a lock already. */
function create(path: string, holder: Holder): boolean {
  try {
    writeFileSync(path, JSON.stringify(holder) + "\n", { flag: "wx" });
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw fsError(error, `write ${path}`);
  }
}

/** Replaces a stale lock. Only one process at a time may do so, or two could each remove the other's fresh lock. */
function takeOver(path: string, mine: Holder): string {
  const guard = `${path}.takeover`;
  enter(guard, path);
  try {
    const holder = read(path);
    if (holder !== null) refuseIfAlive(path, holder);
    rmSync(path, { force: true });
    if (!create(path, mine))
      throw new ResultsError(
        "in-use",
        `another process has just locked ${path}. Wait for it or use another --out.`,
      );
    return holder === null
      ? `an unreadable lock file (${path}) was replaced`
      : `the sweep of process ${holder.pid} (${holder.lockedAt}) had ended without unlocking the folder; its lock was removed`;
  } catch (error) {
    throw fsError(error, `write ${path}`);
  } finally {
    leave(guard);
  }
}

function enter(guard: string, path: string): void {
  try {
    if (isOld(guard)) rmdirSync(guard);
    mkdirSync(guard);
  } catch (error) {
    if (errorCode(error) !== "EEXIST" && errorCode(error) !== "ENOENT")
      throw fsError(error, `write ${guard}`);
    throw new ResultsError("in-use", `another process is just taking over ${path}. Try again.`);
  }
}

function leave(guard: string): void {
  try {
    rmdirSync(guard);
  } catch {
    // It is old in a few seconds, and holds nobody up then.
  }
}

function isOld(guard: string): boolean {
  try {
    return Date.now() - statSync(guard).mtimeMs > youngLockMs;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return false;
    throw error;
  }
}

function refuseIfAlive(path: string, holder: Holder): void {
  if (holder.host !== hostname())
    throw new ResultsError(
      "in-use",
      `the results folder is locked by process ${holder.pid} on host ${holder.host} since ${holder.lockedAt}. ` +
        `Wait for it, use another --out, or remove ${path} if that process is gone.`,
    );
  const start = processStart(holder.pid);
  const reused = start !== null && holder.processStart !== null && start !== holder.processStart;
  if (isAlive(holder.pid) && !reused)
    throw new ResultsError(
      "in-use",
      `the results folder is in use by process ${holder.pid} since ${holder.lockedAt} (${path}). ` +
        `Wait for it to end or choose another folder with --out DIR.`,
    );
}

/**
 * The lock's holder; null when there is no lock or it is damaged.
 * @throws ResultsError when it cannot be understood but is so young that its owner may still be writing it
 */
function read(path: string): Holder | null {
  let text: string;
  let ageMs: number;
  try {
    text = readFileSync(path, "utf8");
    ageMs = Date.now() - statSync(path).mtimeMs;
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw fsError(error, `read ${path}`);
  }
  const holder = parseHolder(text);
  if (holder === null && ageMs < youngLockMs)
    throw new ResultsError(
      "in-use",
      `another process is just locking the results folder (${path}). Try again.`,
    );
  return holder;
}

function parseHolder(text: string): Holder | null {
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

function isSame(a: Holder, b: Holder): boolean {
  return (
    a.pid === b.pid && a.host === b.host && a.processStart === b.processStart && a.lockedAt === b.lockedAt
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) !== "ESRCH";
  }
}

function processStart(pid: number): string | null {
  try {
    if (process.platform === "linux") {
      // Field 22 of proc(5) stat; the command name (field 2) may hold spaces and brackets, so count from its end.
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
    }
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() || null;
  } catch {
    return null;
  }
}
