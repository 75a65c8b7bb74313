/** Runs the Go compiler with its caches inside the tool cache and says how far it is. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** What a build gets. */
export interface BuildContext {
  /** Copy of the tool's module, free to be written to. */
  workDir: string;
  /** Where the finished programs go. */
  outDir: string;
  /** Environment of every command: PATH of the user, caches of ours. */
  env: NodeJS.ProcessEnv;
  /** Shows progress; the next call replaces the text on a terminal. */
  progress(text: string): void;
}

/** What is linked. */
export interface GoTarget {
  packagePath: string;
  program: string;
  /** Build tags. */
  tags?: string[];
  /** String variables set by the linker, by full name. */
  variables: Record<string, string>;
}

/** Environment under which everything is compiled. One set of flags for all, or nothing of the cache is shared. */
export function goEnvironment(root: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    GOMODCACHE: join(root, "go", "mod"),
    GOCACHE: join(root, "go", "build"),
    GOFLAGS: "-buildvcs=false",
    GOTOOLCHAIN: "local",
    GOWORK: "off",
    CGO_ENABLED: "0",
  };
}

/**
 * Runs a command, hands each line of its output to `onLine`.
 * @returns standard output.
 * @throws Error with the last lines of the output when it fails.
 */
export async function run(
  context: BuildContext,
  command: string,
  args: string[],
  onLine: (line: string) => void = () => undefined,
): Promise<string> {
  const child = spawn(command, args, {
    cwd: context.workDir,
    env: context.env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const tail: string[] = [];
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  createInterface(child.stderr).on("line", (line) => {
    tail.push(line);
    if (tail.length > 30) tail.shift();
    onLine(line);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`Cannot run ${command}: ${error.message}`)));
    child.on("close", resolve);
  });
  if (code === 0) return stdout;
  throw new Error(`${command} ${args.slice(0, 2).join(" ")} failed (exit ${code}):\n${tail.join("\n")}`);
}

/** Downloads, compiles and links one program. What was compiled before an interruption is not compiled again. */
export async function goBuild(context: BuildContext, target: GoTarget): Promise<void> {
  context.progress("downloading modules");
  const tags = `-tags=${(target.tags ?? []).join(",")}`;
  const packages = await run(context, "go", [
    "list",
    tags,
    "-deps",
    "-e",
    "-f",
    "{{.ImportPath}}",
    target.packagePath,
  ]);
  const total = packages.split("\n").filter(Boolean).length;
  let compiled = 0;
  const linked = Object.entries(target.variables).map(([name, value]) => `-X ${name}=${value}`);
  context.progress(`compiling ${target.program} (${total} packages)`);
  await run(
    context,
    "go",
    [
      ...["build", tags, "-v", "-trimpath", "-ldflags", ["-s", "-w", ...linked].join(" ")],
      ...["-o", join(context.outDir, target.program), target.packagePath],
    ],
    () => context.progress(`compiling ${target.program}: ${(compiled += 1)} of at most ${total} packages`),
  );
}
