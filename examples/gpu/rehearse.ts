/**
 * The GPU machine's run without a GPU: `npm run gpu:rehearse [-- FOLDER]` makes a bundle for this machine's Python with a model that only
 * takes its time, unpacks it, starts the real Triton, and measures some minutes: a run that is killed in the middle and comes back on
 * "another machine", one that ends by its time limit, and one that finishes what is left. Needs `npm run setup:tools -- --tool triton`
 * and a python3 (3.8 to 3.13) with NumPy 1.x and its shared library; PYTHON names another one than that in PATH.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";
import { parse, stringify } from "yaml";
import { freePorts } from "../../test/free-ports";
import { lockFileName } from "../../tuning/results/lock";
import { pointLogFileName, readPointLog } from "../../tuning/results/point-log";
import { readResult } from "../../tuning/results/results-folder";
import { makeBundle } from "./bundle";

const MAX_BATCH = 8;
/** Of every file of variants so many are measured. */
const VARIANTS = 2;
/** All but the bare model, which needs the GPU. */
const parts = ["path", "explore", "explore20", "grid", "grid20"] as const;

function fail(text: string): never {
  process.stderr.write(`rehearse: ${text}\n`);
  process.exit(1);
}

function pythonVersion(python: string): string {
  const asked =
    "import sys, numpy; assert numpy.__version__ < '2', 'NumPy 2'; print('%d.%d' % sys.version_info[:2])";
  const { status, stdout, stderr } = spawnSync(python, ["-c", asked], { encoding: "utf8" });
  if (status === 0) return stdout.trim();
  return fail(
    `${python} cannot be used (${(stderr ?? "not found").trim().split("\n").at(-1)}): name one that has NumPy 1.x with PYTHON=/path/to/python3`,
  );
}

/** The first few, small and quick. */
function fewer(yaml: string): string {
  const all = parse(yaml) as { maxBatchSize: number; instanceCount: number }[];
  return stringify(
    all
      .slice(0, VARIANTS)
      .map((variant, index) => ({ ...variant, maxBatchSize: MAX_BATCH, instanceCount: index + 1 })),
  );
}

interface Run {
  /** Null: it was killed. */
  readonly code: number | null;
  readonly text: string;
}

class Rehearsal {
  readonly results: string;
  private readonly bundle: string;

  constructor(
    folder: string,
    private readonly python: string,
    private readonly ports: readonly number[],
  ) {
    this.results = join(folder, "results");
    this.bundle = join(folder, "bundle");
  }

  /** @param kind of bundle */
  unpack(version: string): void {
    mkdirSync(this.bundle, { recursive: true });
    const archive = join(this.bundle, "../bundle.tar");
    const size = makeBundle(archive, {
      pythonVersion: version,
      pythonModules: ["numpy"],
      compression: 0,
      variants: fewer,
      repository: {
        modelFile: join(__dirname, "rehearsal/model.py"),
        instanceKind: "KIND_CPU",
        maxBatchSize: MAX_BATCH,
      },
    });
    process.stdout.write(`bundle for Python ${version}: ${(size / 1e6).toFixed(1)} MB, hardly compressed\n`);
    if (spawnSync("tar", ["xf", archive, "-C", this.bundle]).status !== 0)
      fail("the archive cannot be unpacked");
    rmSync(archive);
  }

  /** One call of the one command. @param killWhen asked often; true: everything is killed at once, as when a machine is taken away */
  measure(limitS: number | null, killWhen?: () => boolean): Promise<Run> {
    const [http, grpc, metrics] = this.ports;
    const child = spawn(
      join(this.bundle, "start.sh"),
      [join(this.bundle, "measure.sh"), this.results, ...parts],
      {
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          ...process.env,
          PATH: [dirname(this.python), process.env["PATH"]].join(delimiter),
          ...{ HTTP_PORT: String(http), GRPC_PORT: String(grpc), METRICS_PORT: String(metrics) },
          // A bound that a busy machine can judge by.
          ...{ WORKERS: "1", MAX_RATE: "200", TUNE_OPTIONS: "--slo p95=400ms" },
          ...(limitS === null ? {} : { LIMIT_S: String(limitS) }),
        },
      },
    );
    const killAll = (): void => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch {
        // It has ended.
      }
    };
    process.once("exit", killAll);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (some: string) => {
        text += some;
        process.stdout.write(some);
      });
    const timer = setInterval(() => void (killWhen?.() && killAll()), 100);
    return new Promise((done, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        clearInterval(timer);
        process.removeListener("exit", killAll);
        done({ code, text });
      });
    });
  }

  /** Keys of the trials that a part has so far. */
  trials(part: string): string[] {
    const file = join(this.results, part, pointLogFileName);
    return existsSync(file) ? readPointLog(file).records.map(({ key, attempt }) => `${key} ${attempt}`) : [];
  }
}

async function main(folder: string): Promise<void> {
  const wanted = process.env["PYTHON"] ?? "python3";
  const python = spawnSync("sh", ["-c", `command -v ${JSON.stringify(wanted)}`], {
    encoding: "utf8",
  }).stdout.trim();
  if (python === "") fail(`${wanted} is not there: name a python3 with NumPy with PYTHON=/path/to/python3`);
  rmSync(folder, { recursive: true, force: true });
  const rehearsal = new Rehearsal(folder, python, await freePorts(3));
  rehearsal.unpack(pythonVersion(python));

  process.stdout.write("\n--- killed in the middle\n");
  const first = parts[0];
  const killed = await rehearsal.measure(null, () => rehearsal.trials(first).length >= 2);
  const kept = rehearsal.trials(first);
  if (killed.code !== null || kept.length < 2)
    fail(`it was to be killed after two trials, and ended with ${killed.code}`);
  // As from a machine that is gone.
  const lock = join(rehearsal.results, first, lockFileName);
  if (!existsSync(lock)) fail("a killed sweep leaves its lock");
  writeFileSync(lock, readFileSync(lock, "utf8").replace(/"host":"[^"]*"/, '"host":"gone"'));

  process.stdout.write("\n--- ended by its time limit\n");
  const limited = await rehearsal.measure(60);
  if (limited.code !== 4) fail(`with too little time it must end with 4, not ${limited.code}`);
  const more = rehearsal.trials(first);
  if (kept.some((trial, index) => trial !== more[index]))
    fail("trials of the killed run were lost or repeated");

  process.stdout.write("\n--- the rest\n");
  const rest = await rehearsal.measure(null);
  if (rest.code !== 0) fail(`it must finish, and ended with ${rest.code}`);
  const again = await rehearsal.measure(null);
  if (again.code !== 0 || !parts.every((part) => again.text.includes(`${part}: finished before`)))
    fail("what is finished must be left out");
  for (const part of parts) {
    const { variants, endedEarly } = readResult(join(rehearsal.results, part));
    const keys = rehearsal.trials(part);
    const least = part.startsWith("explore") ? 1 : VARIANTS;
    if (endedEarly !== null || variants.length < least) fail(`${part} is not whole`);
    if (new Set(keys).size !== keys.length) fail(`${part} has a trial twice`);
    const rates = variants.map(({ name, sloRate }) => `${name} ${sloRate?.estimate.toFixed(1) ?? "none"}/s`);
    process.stdout.write(`${part}: ${keys.length} trials, ${rates.join(", ")}\n`);
  }
  const summary = spawnSync(
    process.execPath,
    ["--import", "tsx", join(__dirname, "summary.ts"), rehearsal.results],
    { encoding: "utf8" },
  );
  if (summary.status !== 0) fail(`no summary: ${summary.stderr}`);
  process.stdout.write(`${summary.stdout}\nrehearsed: results in ${rehearsal.results}\n`);
}

main(resolve(process.argv[2] ?? join(__dirname, "../../dist/gpu-rehearsal"))).catch((error: unknown) => {
  fail(error instanceof Error ? error.message : String(error));
});
