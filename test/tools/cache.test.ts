import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cacheRoot, findTool, requireTool, toolDir, toolKey } from "../../tools/cache";
import type { Tool } from "../../tools/catalogue";

let dir: string;
let path: string | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tools-"));
  path = process.env.PATH;
  mkdirSync(join(dir, "source"));
  writeFileSync(join(dir, "source", "main.go"), "package main");
});
afterEach(() => {
  process.env.PATH = path;
  rmSync(dir, { recursive: true, force: true });
});

const tool = (changes: Partial<Tool> = {}): Tool => ({
  ...{ name: "kube-testbed", summary: "a test", version: "1.2.3", needs: "python3" },
  programs: { "some-program": { versionArgs: ["--version"] } },
  sources: [join(dir, "source")],
  cost: { coldS: 300, workMb: 1, keepMb: 1 },
  build: async () => undefined,
  ...changes,
});

/** A program on PATH that prints a version. */
function install(prints: string): void {
  const bin = join(dir, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "some-program"), `#!/bin/sh\necho "${prints}"\n`);
  chmodSync(join(bin, "some-program"), 0o755);
  process.env.PATH = `${bin}:${path}`;
}

describe("place of the cache", () => {
  it("follows the variables, the more exact first", () => {
    expect(cacheRoot({ TRITON_SLO_TOOLS_CACHE: "/a", XDG_CACHE_HOME: "/b" })).toBe("/a");
    expect(cacheRoot({ XDG_CACHE_HOME: "/b" })).toBe("/b/triton-slo-stack/tools");
    expect(cacheRoot({})).toMatch(/\/\.cache\/triton-slo-stack\/tools$/);
  });
});

describe("key", () => {
  it("changes with a source's content, a new source, the version and the compiler, and with nothing else", () => {
    const key = toolKey(tool());
    expect(toolKey(tool())).toBe(key);
    expect(toolKey(tool({ summary: "other words" }))).toBe(key);
    expect(toolKey(tool({ version: "1.2.4" }))).not.toBe(key);
    expect(toolKey(tool(), "another compiler")).not.toBe(key);
    writeFileSync(join(dir, "source", "more.go"), "");
    const more = toolKey(tool());
    expect(more).not.toBe(key);
    writeFileSync(join(dir, "source", "main.go"), "package other");
    expect(toolKey(tool())).not.toBe(more);
  });
});

describe("finding a tool", () => {
  it("in the cache", () => {
    mkdirSync(toolDir(tool(), dir), { recursive: true });
    expect(findTool(tool(), dir)).toEqual({
      from: "cache",
      programs: { "some-program": join(toolDir(tool(), dir), "some-program") },
    });
  });

  it.each(["some 1.2.3", "some version v1.2.3 (built today)", "1.2.3"])(
    "on PATH, when it prints %s",
    (printed) => {
      install(printed);
      expect(findTool(tool(), dir)?.from).toBe("installed");
    },
  );

  it.each(["some 1.2.30", "some 11.2.3", "some 1.2", ""])("not on PATH, when it prints '%s'", (printed) => {
    install(printed);
    expect(findTool(tool(), dir)).toBeUndefined();
  });

  it("nowhere: says how to build it and what that costs", () => {
    expect(() => requireTool(tool(), dir)).toThrow(
      "kube-testbed 1.2.3 is neither built nor installed. Build it with `npm run setup:tools -- --tool kube-testbed` (about 5 min on two cores).",
    );
  });
});
