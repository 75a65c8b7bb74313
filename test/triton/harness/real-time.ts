/** Real-time scheduling for what has to keep times on a busy machine, where the user may ask for it (root, CAP_SYS_NICE). */
import { execFileSync } from "node:child_process";

const command = ["chrt", "--rr", "1"] as const;
let allowed: boolean | undefined;

/** The words that start a program, with the scheduler's command in front where it is allowed. */
export function inRealTime(...words: readonly string[]): string[] {
  if (allowed === undefined) {
    try {
      execFileSync(command[0], [...command.slice(1), "true"], { stdio: "ignore" });
      allowed = true;
    } catch {
      allowed = false;
    }
  }
  return allowed ? [...command, ...words] : [...words];
}
