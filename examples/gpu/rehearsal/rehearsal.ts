/** What the rehearsal starts and kills: the bundle with a model that only takes its time, its commands and its server. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { pointLogFileName, readPointLog } from "../../../tuning/results/point-log";
import { makeBundle } from "../bundle";

const MAX_BATCH = 8;
/** Of every file of variants so many are measured. */
export const VARIANTS = 2;
/** One part of every kind but the bare model, which needs the GPU: on one server, and divided among two. */
export const part = "path";
const dividedParts = ["explore20", "grid", "grid20"] as const;

export function fail(text: string): never {
  process.stderr.write(`rehearse: ${text}\n`);
  process.exit(1);
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

export interface Run {
  /** Null: it was killed. */
  readonly code: number | null;
  readonly text: string;
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Keys of the trials that a part has so far. */
export function trialsOf(folder: string): string[] {
  const file = join(folder, pointLogFileName);
  return existsSync(file) ? readPointLog(file).records.map(({ key, attempt }) => `${key} ${attempt}`) : [];
}

export class Rehearsal {
  readonly results: string;
  readonly archive: string;
  private readonly bundle: string;
  /** Process groups that end with this process. */
  private readonly groups = new Set<number>();

  constructor(
    readonly folder: string,
    private readonly python: string,
    private readonly port: number,
  ) {
    this.results = join(folder, "results");
    this.archive = join(folder, "results.tgz");
    this.bundle = join(folder, "bundle");
    process.once("exit", () => this.groups.forEach(killGroup));
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  }

  /** @param version of Python */
  unpack(version: string): void {
    mkdirSync(this.bundle, { recursive: true });
    const archive = join(this.bundle, "../bundle.tar");
    const size = makeBundle(archive, {
      pythonVersion: version,
      pythonModules: ["numpy"],
      compression: 0,
      variants: fewer,
      repository: {
        modelFile: join(__dirname, "model.py"),
        instanceKind: "KIND_CPU",
        maxBatchSize: MAX_BATCH,
      },
    });
    process.stdout.write(`bundle for Python ${version}: ${(size / 1e6).toFixed(1)} MB, hardly compressed\n`);
    if (spawnSync("tar", ["xf", archive, "-C", this.bundle]).status !== 0)
      fail("the archive cannot be unpacked");
    rmSync(archive);
  }

  /** One call of the one command. @param look asked often; true: everything is killed at once, as when a machine is taken away */
  measure(limitS: number | null, look?: () => boolean): Promise<Run> {
    return this.call(["start.sh", join(this.bundle, "measure.sh"), this.results, part], limitS, look);
  }

  /** Two servers. @param results folder; an empty one is gone on with from the archive */
  sideBySide(results: string, look?: () => boolean): Promise<Run> {
    return this.call(["side-by-side.sh", results, this.archive, ...dividedParts], null, () => {
      const file = join(results, "pid");
      const driver = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
      if (driver > 0) this.groups.add(driver);
      if (!look?.()) return false;
      killGroup(driver);
      return true;
    });
  }

  private call(words: readonly string[], limitS: number | null, look?: () => boolean): Promise<Run> {
    const child = spawn(join(this.bundle, words[0]!), words.slice(1), {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...process.env,
        PATH: [dirname(this.python), process.env["PATH"]].join(delimiter),
        ...{ HTTP_PORT: String(this.port), GRPC_PORT: String(this.port + 1) },
        ...{ METRICS_PORT: String(this.port + 2), GPUS: "2" },
        // A bound that a busy machine can judge by.
        ...{ WORKERS: "1", MAX_RATE: "200", EXPLORE: "1", TUNE_OPTIONS: "--slo p95=400ms" },
        ...(limitS === null ? {} : { LIMIT_S: String(limitS) }),
      },
    });
    this.groups.add(child.pid!);
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (some: string) => {
        text += some;
        process.stdout.write(some);
      });
    const timer = setInterval(() => void (look?.() && killGroup(child.pid!)), 100);
    return new Promise((done, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        clearInterval(timer);
        done({ code, text });
      });
    });
  }

  /** Keys of the trials that there are of the one part. */
  trials(): string[] {
    return trialsOf(join(this.results, part));
  }

  /** As a bug in the server does. */
  crashServer(): void {
    const words = ["-f", `bin/tritonserver .*--grpc-port=${this.port + 1} `];
    const { stdout } = spawnSync("pgrep", words, { encoding: "utf8" });
    for (const pid of stdout.split("\n").filter(Boolean)) process.kill(Number(pid), "SIGSEGV");
  }
}
