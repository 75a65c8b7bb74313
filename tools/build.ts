/** Command: builds the tools that the engine and monitoring tests run for real, or says what is missing. */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { cacheRoot, findTool, goVersion, toolDir, toolKey } from "./cache";
import { tools, toolNamed, type Tool } from "./catalogue";
import { goEnvironment, type BuildContext } from "./go-build";

function duration(seconds: number): string {
  return seconds < 60
    ? `${Math.round(seconds)} s`
    : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** On a terminal one line that changes; elsewhere a line every 15 s, so that a log of CI shows life. */
function reporter(name: string): (text: string) => void {
  const startedMs = Date.now();
  let shownMs = 0;
  return (text) => {
    const line = `${name}: ${text} (${duration((Date.now() - startedMs) / 1000)})`;
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line}`);
    else if (Date.now() - shownMs > 15_000) process.stdout.write(`${line}\n`);
    else return;
    shownMs = Date.now();
  };
}

function workCopy(tool: Tool, root: string): string {
  const workDir = join(root, "work", `${tool.name}-${toolKey(tool)}`);
  mkdirSync(workDir, { recursive: true });
  for (const source of tool.sources.filter((path) => lstatSync(path).isDirectory())) {
    cpSync(source, workDir, { recursive: true });
  }
  return workDir;
}

async function build(tool: Tool, root: string): Promise<void> {
  if (tool.needs === "go" && !goVersion()) {
    throw new Error(
      `${tool.name} is compiled with Go and there is none on PATH. Install Go 1.26 or newer (https://go.dev/dl).`,
    );
  }
  const startedMs = Date.now();
  const finalDir = toolDir(tool, root);
  const outDir = `${finalDir}.partial-${process.pid}`;
  const workDir = workCopy(tool, root);
  rmSync(outDir, { recursive: true, force: true });
  mkdirSync(outDir, { recursive: true });
  const context: BuildContext = { workDir, outDir, env: goEnvironment(root), progress: reporter(tool.name) };
  try {
    await tool.build(context);
    const seconds = (Date.now() - startedMs) / 1000;
    writeFileSync(
      join(outDir, "built.json"),
      JSON.stringify({ tool: tool.name, version: tool.version, seconds }),
    );
    // The rename is what makes the tool exist: an interrupted build never looks finished.
    renameSync(outDir, finalDir);
    rmSync(workDir, { recursive: true, force: true });
    console.log(
      `${process.stdout.isTTY ? "\r\x1b[K" : ""}${tool.name} ${tool.version}: built in ${duration(seconds)}, ${finalDir}`,
    );
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
}

/** Go writes its module cache read-only, which stops a plain removal. */
function removeTree(path: string): void {
  if (!existsSync(path)) return;
  const unlock = (dir: string): void => {
    chmodSync(dir, 0o755);
    for (const entry of readdirSync(dir, { withFileTypes: true }))
      if (entry.isDirectory()) unlock(join(dir, entry.name));
  };
  unlock(path);
  rmSync(path, { recursive: true, force: true });
}

function prune(root: string): void {
  const current = new Set(tools.map((tool) => toolDir(tool, root)));
  for (const name of existsSync(root) ? readdirSync(root) : []) {
    const path = join(root, name);
    if (!current.has(path)) removeTree(path);
  }
  console.log(`Removed compiler caches and outdated tools from ${root}.`);
}

/** Prints the state of each tool. Returns those that have to be built. */
function check(selected: readonly Tool[], root: string): Tool[] {
  const missing = selected.filter((tool) => !findTool(tool, root));
  for (const tool of selected) {
    const found = findTool(tool, root);
    const { coldS, workMb, keepMb } = tool.cost;
    const state = found
      ? `ready (${found.from}: ${Object.values(found.programs)[0]})`
      : `missing: about ${duration(coldS)} on two cores, ${workMb} MB while building, ${keepMb} MB kept`;
    console.log(`${tool.name} ${tool.version}, ${tool.summary}: ${state}`);
  }
  if (missing.length > 0) {
    const total = missing.reduce((sum, tool) => sum + tool.cost.coldS, 0);
    console.log(
      `Missing: ${missing.length}. \`npm run setup:tools\` builds them in about ${duration(total)} into ${root}.`,
    );
  }
  return missing;
}

async function main(): Promise<void> {
  const options = new Command("setup:tools")
    .description("Builds the tools that tests run for real. Interrupted, it goes on where it was.")
    .option("--check", "only say what is missing and what it costs; exit code 1 when something is")
    .option("--tool <name...>", `only these: ${tools.map((tool) => tool.name).join(", ")}`)
    .option("--prune", "remove the compiler's caches and outdated tools afterwards")
    .parse()
    .opts<{ check?: boolean; tool?: string[]; prune?: boolean }>();
  const root = cacheRoot();
  const selected = options.tool ? options.tool.map(toolNamed) : tools;
  if (options.check) {
    process.exitCode = check(selected, root).length > 0 ? 1 : 0;
    return;
  }
  for (const tool of selected.filter((candidate) => !findTool(candidate, root))) await build(tool, root);
  check(selected, root);
  if (options.prune) prune(root);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
