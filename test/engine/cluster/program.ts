/** Runs a program that must not outlive the test, however the test ends. */
import { spawn, type ChildProcess } from "node:child_process";
import { openSync, readFileSync, closeSync } from "node:fs";

/**
 * The shell holds a pipe from this process. When the pipe closes, because we said so or because this process was killed,
 * the program gets SIGTERM, and SIGKILL after 5 s: an API server whose etcd is gone waits for it. A parent-death signal would do the same but cannot be set from Node.
 */
const supervisor = `exec 3<&0
"$@" </dev/null 3<&- &
program=$!
( cat <&3 >/dev/null
  kill "$program"
  for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.5; kill -0 "$program" || exit; done
  kill -9 "$program" ) >/dev/null 2>&1 &
exec 3<&- </dev/null
wait "$program"`;

/** A running program. */
export class Program {
  private readonly child: ChildProcess;
  private readonly exited: Promise<void>;
  private ended = false;

  private constructor(
    readonly name: string,
    readonly logFile: string,
    file: string,
    args: string[],
    env: NodeJS.ProcessEnv,
  ) {
    const log = openSync(logFile, "a");
    this.child = spawn("/bin/sh", ["-c", supervisor, "sh", file, ...args], {
      stdio: ["pipe", log, log],
      // Its own process group, so that the whole group can be killed if it ignores SIGTERM.
      detached: true,
      env,
    });
    closeSync(log);
    this.child.unref();
    this.exited = new Promise((resolve) => {
      this.child.once("exit", () => {
        this.ended = true;
        this.child.stdin?.destroy();
        resolve();
      });
    });
  }

  /** Starts `file` with its output in `logFile`. */
  static start(
    name: string,
    file: string,
    args: string[],
    logFile: string,
    env: NodeJS.ProcessEnv = process.env,
  ): Program {
    return new Program(name, logFile, file, args, env);
  }

  /** True until the program has ended, for whatever reason. */
  get running(): boolean {
    return !this.ended;
  }

  /** Last lines of its log, for error messages. */
  logTail(lines = 15): string {
    return readFileSync(this.logFile, "utf8").trimEnd().split("\n").slice(-lines).join("\n");
  }

  /** SIGTERM, and SIGKILL after `graceMs`. Resolves when the program and its ports are gone. */
  async stop(graceMs = 10_000): Promise<void> {
    if (this.ended) return;
    this.child.stdin?.end();
    const timer = setTimeout(() => this.kill(), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  /** SIGKILL at once. */
  kill(): void {
    if (!this.ended && this.child.pid !== undefined) process.kill(-this.child.pid, "SIGKILL");
  }
}

/**
 * Polls until `check` gives something.
 * @throws Error with `what` and the last failure when `timeoutMs` is over.
 */
export async function until<T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  timeoutMs = 30_000,
  everyMs = 100,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  let last = "";
  for (;;) {
    try {
      const value = await check();
      if (value !== undefined && value !== false) return value;
    } catch (error) {
      last = `: ${error instanceof Error ? error.message : String(error)}`;
    }
    if (Date.now() > deadline) throw new Error(`Not within ${timeoutMs / 1000} s: ${what}${last}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
