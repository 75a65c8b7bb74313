/** Builds what stands in for a GPU and its backends: our own C sources, compiled once into the cache of tools. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheRoot, requireTool } from "../../../tools/cache";
import { toolNamed } from "../../../tools/catalogue";

const sources = join(__dirname, "..", "backend");
/** Backends that the stand-in serves under their own names, so that `platform` of a configuration stays as it is. */
const backends = ["tensorflow", "tensorrt", "onnxruntime", "sim"] as const;
const compiler = process.env["CC"] ?? "gcc";

export interface StandIns {
  /** Value of --backend-directory. */
  readonly backendFolder: string;
  /** Library for LD_PRELOAD. */
  readonly gpuShim: string;
}

/** @throws Error that says how to get the server */
export function tritonProgram(): string {
  return requireTool(toolNamed("triton")).programs["pytriton/tritonserver/bin/tritonserver"]!;
}

/** @throws Error that names the compiler when it is missing or refuses the sources */
export function buildStandIns(): StandIns {
  const hash = createHash("sha256");
  for (const file of readdirSync(sources).sort()) hash.update(readFileSync(join(sources, file)));
  const folder = join(cacheRoot(), `triton-stand-ins-${hash.digest("hex").slice(0, 16)}`);
  if (!existsSync(folder)) compile(folder);
  return { backendFolder: join(folder, "backends"), gpuShim: join(folder, "libgpu_shim.so") };
}

function compile(folder: string): void {
  const partial = `${folder}.partial-${process.pid}`;
  mkdirSync(join(partial, "backends"), { recursive: true });
  try {
    const library = join(partial, "libstand_in.so");
    gcc(library, "stand_in.c", "-lpthread");
    gcc(join(partial, "libgpu_shim.so"), "gpu_shim.c");
    for (const backend of backends) {
      mkdirSync(join(partial, "backends", backend));
      linkSync(library, join(partial, "backends", backend, `libtriton_${backend}.so`));
    }
    // The rename is what makes it exist; another test process may have been faster.
    if (!existsSync(folder)) renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function gcc(output: string, source: string, ...libraries: readonly string[]): void {
  const words = ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-o", output];
  try {
    execFileSync(compiler, [...words, join(sources, source), ...libraries], { stdio: "pipe" });
  } catch (error) {
    throw new Error(
      `${compiler} cannot compile test/triton/backend/${source}: ${error instanceof Error ? error.message : String(error)}. ` +
        `The tests of the real Triton need a C compiler (Debian: apt-get install gcc libc6-dev).`,
    );
  }
}
