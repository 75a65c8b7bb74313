/** Reads a stack's outputs with the Pulumi command, as its user would. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { parseStackOutputs, type StackOutputs } from "../../stack/outputs";
import { TargetError } from "../target-error";

const run = promisify(execFile);

/** @throws TargetError: no pulumi, no such stack, nothing deployed, or outputs of another version */
export async function readStackOutputs(stack: string): Promise<StackOutputs> {
  let stdout: string;
  try {
    ({ stdout } = await run("pulumi", ["stack", "output", "--json", "--stack", stack], {
      maxBuffer: 64 << 20,
    }));
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === "ENOENT")
      throw new TargetError(
        "--stack needs the pulumi command: install it (https://www.pulumi.com/docs/install)",
      );
    // Warnings, e.g. of a newer version, come first.
    const lines = (stderr || String(error)).trim().split("\n");
    const reason = lines.find((line) => /^error:/i.test(line)) ?? lines[0];
    throw new TargetError(
      `the outputs of stack ${stack} cannot be read: ${reason}. Known stacks: pulumi stack ls`,
    );
  }
  let outputs: unknown;
  try {
    outputs = JSON.parse(stdout);
  } catch {
    throw new TargetError(
      `pulumi stack output --json --stack ${stack} prints no JSON (${JSON.stringify(stdout.slice(0, 80))}): ` +
        `check that the pulumi command in PATH is Pulumi's, 3.0 or newer`,
    );
  }
  if (typeof outputs !== "object" || outputs === null || Object.keys(outputs).length === 0)
    throw new TargetError(
      `stack ${stack} has no outputs: it is not deployed; run pulumi up --stack ${stack} first`,
    );
  try {
    return parseStackOutputs(outputs);
  } catch (error) {
    throw new TargetError(`stack ${stack}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
