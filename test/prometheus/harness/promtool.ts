/** promtool of the deployed version: what it says, and whether it agrees. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { requireTool } from "../../../tools/cache";
import { toolNamed } from "../../../tools/catalogue";

export interface PromtoolAnswer {
  readonly status: number | null;
  readonly text: string;
}

/** Runs promtool in a folder with these files; the folder goes with the test. */
export function promtool(
  files: Readonly<Record<string, string>>,
  ...words: readonly string[]
): PromtoolAnswer {
  const folder = mkdtempSync(join(tmpdir(), "promtool-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const program = requireTool(toolNamed("prometheus")).programs["promtool"] ?? "promtool";
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd: folder,
    encoding: "utf8",
    timeout: 60_000,
  });
  return { status, text: stdout + stderr };
}
