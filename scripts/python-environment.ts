/**
 * A Python environment of the project's own: a virtual environment in the tool cache, one for each state of a requirements file
 * and each Python, filled from pinned and hashed requirements. The system's Python is only used to make it.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { spawn, spawnSync } from "node:child_process";

/** Requirements files of the convert package. */
export type Requirements = "local" | "test";

/** No Python, or an environment that cannot be made; the message says what to do. */
export class PythonError extends Error {
  override readonly name = "PythonError";
}

const packageFolder = join(__dirname, "..", "model-repo", "convert");
/** Below this folder `convert` is a package. */
export const pythonPath = join(packageFolder, "..");

/** Tried in this order; versions outside the range are passed over. */
const candidates = ["python3", "python3.11", "python3.12", "python3.10"];
const oldest = [3, 10] as const;
const newest = [3, 12] as const;

interface Interpreter {
  readonly program: string;
  /** e.g. `3.11.7`. */
  readonly version: string;
}

/** @throws PythonError when none of the candidates, or the one that `$PYTHON` names, has a usable version */
function findInterpreter(env: NodeJS.ProcessEnv): Interpreter {
  const named = env.PYTHON ? [env.PYTHON] : candidates;
  const seen: string[] = [];
  for (const program of named) {
    const script = "import sys, venv, ensurepip; print('%d.%d.%d' % sys.version_info[:3])";
    const { stdout, status } = spawnSync(program, ["-c", script], { encoding: "utf8", env });
    const version = status === 0 ? stdout.trim() : "";
    const [major = 0, minor = 0] = version.split(".").map(Number);
    if (major === oldest[0] && minor >= oldest[1] && minor <= newest[1]) return { program, version };
    seen.push(`${program}: ${version || "not usable"}`);
  }
  throw new PythonError(
    `Python ${oldest.join(".")} to ${newest.join(".")} with venv is needed (${seen.join(", ")}). ` +
      `Install one (Debian: apt-get install python3-venv), or name it: PYTHON=/path/to/python3.11`,
  );
}

function cacheFolder(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CACHE_HOME || join(env.HOME || homedir(), ".cache");
  return env.TRITON_SLO_TOOLS_CACHE || join(base, "triton-slo-stack", "tools");
}

/**
 * Path of the environment's Python, made if it is not there: about 10 s for `local` (60 MB of downloads), a minute for `test`
 * (300 MB).
 * @throws PythonError
 */
export async function pythonWith(
  requirements: Requirements,
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const { program, version } = findInterpreter(env);
  const file = join(packageFolder, "requirements", `${requirements}.txt`);
  const content = readFileSync(file, "utf8");
  const key = createHash("sha256").update(`${version}\0${content}`).digest("hex").slice(0, 16);
  const folder = join(cacheFolder(env), `python-${requirements}-${key}`);
  const python = join(folder, "bin", "python");
  if (existsSync(python)) return python;
  const partial = `${folder}.partial-${process.pid}`;
  const count = content.match(/^[a-z0-9].*==/gim)?.length ?? 0;
  say(`installing ${count} Python packages into ${folder}`);
  const startedMs = Date.now();
  try {
    mkdirSync(cacheFolder(env), { recursive: true });
    await run(program, ["-m", "venv", partial], env);
    await run(
      join(partial, "bin", "python"),
      [
        ...["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"],
        ...["--require-hashes", "--no-deps", "--only-binary=:all:", "--requirement", file],
      ],
      env,
    );
    // The rename is what makes the environment exist: an interrupted installation never looks finished.
    if (!existsSync(folder)) renameSync(partial, folder);
  } catch (error) {
    throw new PythonError(
      `the Python environment cannot be made: ${error instanceof Error ? error.message : String(error)}`,
    );
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  say(`installed in ${Math.round((Date.now() - startedMs) / 1000)} s`);
  return python;
}

/** Environment variables under which the package runs; it leaves no caches in the checkout. */
export function pythonVariables(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return { ...env, PYTHONPATH: pythonPath, PYTHONDONTWRITEBYTECODE: "1", PYTHONUNBUFFERED: "1" };
}

async function run(program: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  const child = spawn(program, words, { stdio: ["ignore", "inherit", "pipe"], env });
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-10_000)));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code === 0) return;
  const last = said.trim().split("\n").slice(-3).join(" ");
  throw new Error(last || `${program} ${words.slice(0, 2).join(" ")} ended with exit code ${code}`);
}
