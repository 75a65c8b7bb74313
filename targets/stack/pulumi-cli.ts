/** The Pulumi command, run as the user would run it in the folder of the stack's Pulumi.yaml. */
import { spawn } from "node:child_process";
import { TargetError } from "../target-error";

export interface PulumiRun {
  readonly code: number;
  /** Standard output and standard error, in the order in which they came. */
  readonly text: string;
}

/**
 * @param folder folder of Pulumi.yaml
 * @param onOutput shown while it runs
 * @throws TargetError when there is no such command
 */
export function runPulumi(
  folder: string,
  words: readonly string[],
  onOutput: (text: string) => void,
): Promise<PulumiRun> {
  return new Promise((resolve, reject) => {
    const child = spawn("pulumi", [...words], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        onOutput(part);
      });
    child.once("error", (error) =>
      reject(
        (error as { code?: unknown }).code === "ENOENT"
          ? new TargetError("the pulumi command is needed: install it (https://www.pulumi.com/docs/install)")
          : error,
      ),
    );
    child.once("close", (code) => resolve({ code: code ?? 1, text }));
  });
}

/** Name of the stack in its file's name: `dev` of `organisation/project/dev`. */
export function stackFileName(stack: string): string {
  return stack.slice(stack.lastIndexOf("/") + 1);
}
