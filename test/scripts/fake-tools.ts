/** A folder with commands that stand in for real ones, new for every test. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, onTestFinished } from "vitest";

export interface FakeTools {
  /** The present test's folder; its `bin` belongs on PATH. */
  readonly folder: string;
  /** Makes a command. @param body lines of bash; $W is the folder */
  tool(name: string, body: string): void;
}

export function useFakeTools(): FakeTools {
  const tools = {
    folder: "",
    tool(name: string, body: string): void {
      const file = join(tools.folder, "bin", name);
      writeFileSync(file, `#!/bin/bash\nW=${tools.folder}\n${body}\n`);
      chmodSync(file, 0o755);
    },
  };
  beforeEach(() => {
    const made = (tools.folder = mkdtempSync(join(tmpdir(), "convert-")));
    onTestFinished(() => rmSync(made, { recursive: true, force: true }));
    mkdirSync(join(made, "bin"));
  });
  return tools;
}
