/**
 * Packs all that a GPU machine without registries needs into one archive: Triton, Node, the tune command with its load workers, the
 * example's models and images. `npm run gpu:bundle` (dist/gpu/bundle.tar, or `-- OUT.tar`) on a machine that has run `npm ci` and
 * `npm run setup:tools -- --tool triton`; on the GPU machine (x86-64 Linux, NVIDIA driver, Python 3.12 with torch and torchvision):
 * `mkdir b && tar xf bundle.tar -C b && b/start.sh b/measure.sh RESULTS`, or with several GPUs `b/side-by-side.sh RESULTS ARCHIVE`.
 * `npm run gpu:rehearse` tries all of that without a GPU.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { buildSync } from "esbuild";
import { stringify } from "yaml";
import { toolNamed } from "../../tools/catalogue";
import { requireTool, toolDir } from "../../tools/cache";
import { gridNames, gridVariants } from "./grids";
import { makeGpuRepository, type RepositoryKind } from "./make-repository";

const root = join(__dirname, "../..");
/** Largest archive, bytes: what the example promises. */
const LIMIT_BYTES = 60e6;

/** What a bundle is made for. */
export interface BundleKind {
  /** Python of the machine that it will run on: the backend's stub process is built for one version. */
  readonly pythonVersion: string;
  /** Modules that this Python must have. */
  readonly pythonModules: readonly string[];
  readonly repository?: RepositoryKind;
  /** Changes what a file of variants asks for. Default: nothing. */
  readonly variants?: (yaml: string) => string;
  /** Of xz, 0 to 9. */
  readonly compression: number;
}

/** The one for a GPU machine. */
export const gpuBundle: BundleKind = {
  pythonVersion: "3.12",
  pythonModules: ["torch", "torchvision"],
  compression: 6,
};

function run(command: string, args: readonly string[], cwd?: string): void {
  const result = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (result.status !== 0)
    throw new Error(`${command} ${args.join(" ")} failed with ${result.status ?? result.signal}`);
}

/** Commands and workers as single files; every module finds its data files beside the bundle. */
function bundleCode(out: string): void {
  buildSync({
    absWorkingDir: root,
    entryPoints: ["scripts/tune.ts", "loadgen/worker-main.ts", "examples/gpu/divide.ts"],
    entryNames: "[name]",
    outdir: out,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["sharp", "tsx", "@pulumi/*", "@kubernetes/client-node"],
    logLevel: "warning",
  });
  for (const folder of ["kserve/proto", "loadgen/proto"])
    cpSync(join(root, folder), join(out, "proto"), { recursive: true });
  for (const folder of ["labels", "images"])
    cpSync(join(root, "model-repo", folder), join(out, folder), { recursive: true });
  for (const file of ["report.css", "report-page.js"])
    copyFileSync(join(root, "tuning/report", file), join(out, file));
  for (const name of ["sharp", "@img", "detect-libc", "semver"]) {
    const from = join(root, "node_modules", name);
    if (existsSync(from)) cpSync(from, join(out, "node_modules", name), { recursive: true });
  }
}

/** The server without what this example does not start: other Python versions' stubs and their interpreter. */
function copyTriton(out: string, pythonVersion: string): void {
  const tool = toolNamed("triton");
  requireTool(tool);
  const from = toolDir(tool);
  const keep = (path: string): boolean => {
    const name = relative(from, path);
    if (/python_backend_stubs\/3\./.test(name))
      return (
        name.includes(`python_backend_stubs/${pythonVersion}/`) || name.endsWith(`stubs/${pythonVersion}`)
      );
    return !/libpython3-|dist-info|\.pyc$/.test(name);
  };
  for (const folder of [
    "pytriton/tritonserver/bin",
    "pytriton/tritonserver/backends",
    "pytriton/tritonserver/python_backend_stubs",
    "nvidia_pytriton.libs",
  ]) {
    cpSync(join(from, folder), join(out, "triton", folder), { recursive: true, filter: keep });
  }
}

function hashes(folder: string): string {
  const lines = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(folder, name)))
          .digest("hex")}  ${name}`,
    );
  return `${lines.join("\n")}\n`;
}

/** Files of variants by the parts of measure.sh, and their text. */
function variantFiles(): [string, string][] {
  const written = ["path", "tuned"].map((name): [string, string] => [
    name,
    readFileSync(join(__dirname, `variants-${name}.yaml`), "utf8"),
  ]);
  return [...written, ...gridNames.map((name): [string, string] => [name, stringify(gridVariants(name))])];
}

/** Writes the archive. @returns its size, bytes. @throws Error when a tool is missing */
export function makeBundle(outFile: string, kind: BundleKind): number {
  const work = mkdtempSync(join(tmpdir(), "gpu-bundle-"));
  try {
    const payload = join(work, "payload");
    mkdirSync(join(payload, "app"), { recursive: true });
    bundleCode(join(payload, "app"));
    copyTriton(payload, kind.pythonVersion);
    copyFileSync(process.execPath, join(payload, "node"));
    run("strip", [join(payload, "node")]);
    makeGpuRepository(join(payload, "repository"), kind.repository);
    for (const file of ["model.py", "bare_throughput.py"])
      copyFileSync(join(__dirname, file), join(payload, file));
    for (const [name, yaml] of variantFiles())
      writeFileSync(join(payload, `variants-${name}.yaml`), kind.variants?.(yaml) ?? yaml);
    const needs = `PYTHON_VERSION=${kind.pythonVersion}\nPYTHON_MODULES="${kind.pythonModules.join(" ")}"\n`;
    writeFileSync(join(payload, "bundle.env"), needs);
    const archive = join(work, "archive");
    mkdirSync(archive);
    writeFileSync(join(archive, "SHA256SUMS"), hashes(payload));
    run("tar", [
      "-c",
      "-I",
      `xz -${kind.compression} -T0`,
      "-f",
      join(archive, "payload.tar.xz"),
      "-C",
      payload,
      ".",
    ]);
    for (const script of ["start.sh", "measure.sh", "side-by-side.sh", "wait.sh"]) {
      copyFileSync(join(__dirname, script), join(archive, script));
      chmodSync(join(archive, script), 0o755);
    }
    mkdirSync(dirname(outFile), { recursive: true });
    run("tar", ["-c", "-f", outFile, "-C", archive, "."]);
    const { size } = statSync(outFile);
    return size;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function main(outFile: string): void {
  const size = makeBundle(outFile, gpuBundle);
  process.stdout.write(`${outFile}: ${(size / 1e6).toFixed(1)} MB\n`);
  if (size > LIMIT_BYTES)
    throw new Error(`the bundle is larger than ${LIMIT_BYTES / 1e6} MB: leave something out`);
}

if (require.main === module) main(resolve(process.argv[2] ?? join(root, "dist/gpu/bundle.tar")));
