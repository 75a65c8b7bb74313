/**
 * Where built tools live: a cache outside the checkout, one folder per tool and state of its sources.
 * A tool of the right version that the user has already installed is used instead of a built one.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, relative } from "node:path";
import type { Tool } from "./catalogue";

/** Root of the cache: `$TRITON_SLO_TOOLS_CACHE`, else `$XDG_CACHE_HOME/triton-slo-stack/tools`, else under `~/.cache`. */
export function cacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  if (env.TRITON_SLO_TOOLS_CACHE) return env.TRITON_SLO_TOOLS_CACHE;
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "triton-slo-stack", "tools");
}

function filesUnder(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .sort()
    .flatMap((name) => filesUnder(join(path, name)));
}

/** Version of the Go toolchain on PATH as `go version` prints it, or undefined when there is none. */
export function goVersion(): string | undefined {
  try {
    return execFileSync("go", ["version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}

/** Hash of everything that decides what the tool's binaries are: its sources, its version and the compiler. */
export function toolKey(
  tool: Tool,
  compiler: string | undefined = tool.needs === "go" ? goVersion() : tool.needs,
): string {
  const hash = createHash("sha256");
  hash.update(`${tool.name}\0${tool.version}\0${compiler ?? "none"}\0`);
  for (const file of tool.sources.flatMap(filesUnder)) {
    hash
      .update(`${relative(__dirname, file)}\0`)
      .update(readFileSync(file))
      .update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

/** Folder in which the finished tool lies (or will lie). */
export function toolDir(tool: Tool, root: string = cacheRoot()): string {
  return join(root, `${tool.name}-${toolKey(tool)}`);
}

/** Where a tool's programs are: absolute path by program name. */
export interface ToolLocation {
  from: "cache" | "installed";
  programs: Record<string, string>;
}

function onPath(program: string): string | undefined {
  for (const dir of (process.env.PATH ?? "").split(delimiter)) {
    const file = join(dir, program);
    if (dir && existsSync(file) && statSync(file).isFile()) return file;
  }
  return undefined;
}

function prints(file: string, args: string[], expected: string): boolean {
  try {
    const text = execFileSync(file, args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 20_000,
    });
    return new RegExp(`(^|[^0-9.])v?${expected.replaceAll(".", "\\.")}($|[^0-9.])`, "m").test(text);
  } catch {
    return false;
  }
}

function installed(tool: Tool): ToolLocation | undefined {
  const programs: Record<string, string> = {};
  for (const [program, probe] of Object.entries(tool.programs)) {
    const file = probe.file?.() ?? onPath(program);
    if (!file || !existsSync(file)) return undefined;
    if (probe.versionArgs && !prints(file, probe.versionArgs, probe.version ?? tool.version))
      return undefined;
    if (!probe.versionArgs && !probe.file) return undefined;
    programs[program] = file;
  }
  return { from: "installed", programs };
}

/** Finds a tool in the cache or on this machine; undefined when it has to be built. */
export function findTool(tool: Tool, root: string = cacheRoot()): ToolLocation | undefined {
  const dir = toolDir(tool, root);
  if (!existsSync(dir)) return installed(tool);
  const programs = Object.fromEntries(
    Object.keys(tool.programs).map((program) => [program, join(dir, program)]),
  );
  return { from: "cache", programs };
}

/**
 * Finds a tool or says how to get it.
 * @throws Error that names the tool, the command that builds it and what that costs.
 */
export function requireTool(tool: Tool, root: string = cacheRoot()): ToolLocation {
  const found = findTool(tool, root);
  if (found) return found;
  throw new Error(
    `${tool.name} ${tool.version} is neither built nor installed. Build it with ` +
      `\`npm run setup:tools -- --tool ${tool.name}\` (about ${Math.ceil(tool.cost.coldS / 60)} min on two cores).`,
  );
}
