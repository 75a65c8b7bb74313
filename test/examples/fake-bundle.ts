/** An unpacked bundle of examples/gpu whose server and tune command are stand-ins, so that its scripts run without Triton. */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildSync } from "esbuild";
import { onTestFinished } from "vitest";
import { stringify } from "yaml";
import { gridVariants } from "../../examples/gpu/grids";

const source = resolve(__dirname, "../../examples/gpu");

/** Answers /v2/health/live, leaves its process id in pids/, and dies as Triton did while there is a file `crash`. */
const server = (folder: string): string => `#!${process.execPath}
const fs = require("node:fs");
const port = process.argv.find((word) => word.startsWith("--http-port=")).split("=")[1];
console.log("the stand-in serves at", port);
fs.writeFileSync(${JSON.stringify(join(folder, "pids/"))} + process.pid, port);
const look = () => {
  if (!fs.existsSync(${JSON.stringify(join(folder, "crash"))})) return;
  console.log("about to crash");
  process.kill(process.pid, "SIGSEGV");
};
look();
setInterval(look, 50);
require("node:http").createServer((_request, response) => response.end()).listen(Number(port), "127.0.0.1");
`;

/** Notes its words and its GPU; a trial a call; ends when there is a file \`go\`, or when it is stopped. */
const tune = (folder: string): string => `
const fs = require("node:fs");
const words = process.argv.slice(2);
const out = words[words.indexOf("--out") + 1];
fs.mkdirSync(out, { recursive: true });
fs.appendFileSync(out + "/points.jsonl", "a trial\\n");
const line = { gpu: process.env.CUDA_VISIBLE_DEVICES, words: words.join(" ") };
fs.appendFileSync(${JSON.stringify(join(folder, "calls"))}, JSON.stringify(line) + "\\n");
console.log("measuring", out);
const end = (endedAt, endedEarly, code) => {
  fs.writeFileSync(out + "/manifest.json", JSON.stringify({ endedAt }));
  fs.writeFileSync(out + "/result.json", JSON.stringify({ endedEarly }));
  process.exit(code);
};
process.on("SIGTERM", () => end(null, "interrupted", 143));
setInterval(() => fs.existsSync(${JSON.stringify(join(folder, "go"))}) && end("now", null, 0), 50);
`;

export interface Ended {
  readonly code: number | null;
  readonly text: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export class FakeBundle {
  readonly folder = mkdtempSync(join(tmpdir(), "gpu-bundle-"));

  constructor() {
    onTestFinished(() => {
      for (const pid of [...this.servers(), ...this.drivers]) killGroup(pid);
      rmSync(this.folder, { recursive: true, force: true });
    });
    const { folder } = this;
    const bin = join(folder, "triton/pytriton/tritonserver/bin");
    for (const path of [bin, ...["bin", "pids", "app", "repository"].map((name) => join(folder, name))])
      mkdirSync(path, { recursive: true });
    for (const name of ["start.sh", "measure.sh", "side-by-side.sh", "wait.sh"])
      copyFileSync(join(source, name), join(folder, name));
    for (const name of ["unpacked", "linked"]) writeFileSync(join(folder, name), "");
    const asked = "import sys; print('%d.%d' % sys.version_info[:2])";
    const version = spawnSync("python3", ["-c", asked], { encoding: "utf8" }).stdout.trim();
    writeFileSync(join(folder, "bundle.env"), `PYTHON_VERSION=${version}\nPYTHON_MODULES="json"\n`);
    writeFileSync(join(bin, "tritonserver"), server(folder));
    chmodSync(join(bin, "tritonserver"), 0o755);
    symlinkSync(process.execPath, join(folder, "bin/node"));
    writeFileSync(join(folder, "app/tune.js"), tune(folder));
    buildSync({
      entryPoints: [join(source, "divide.ts")],
      outfile: join(folder, "app/divide.js"),
      bundle: true,
      platform: "node",
      format: "cjs",
    });
    for (const grid of ["grid", "grid20"] as const)
      writeFileSync(join(folder, `variants-${grid}.yaml`), stringify(gridVariants(grid)));
  }

  /** Process groups that a test started apart, to be ended with it. */
  readonly drivers: number[] = [];

  start(script: string, words: readonly string[], env: NodeJS.ProcessEnv): Started {
    const child = spawn("bash", [join(this.folder, script), ...words], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    onTestFinished(() => killGroup(child.pid!));
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (some: string) => (text += some));
    return {
      child,
      ended: new Promise<Ended>((done) => child.once("close", (code) => done({ code, text }))),
    };
  }

  /** Process ids of all servers that were started, running or not. */
  servers(): number[] {
    return readdirSync(join(this.folder, "pids")).map(Number);
  }

  running(): number[] {
    return this.servers().filter(isRunning);
  }

  touch(name: string): void {
    writeFileSync(join(this.folder, name), "");
  }

  remove(name: string): void {
    rmSync(join(this.folder, name));
  }

  calls(): { gpu: string; words: string }[] {
    const file = join(this.folder, "calls");
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as { gpu: string; words: string });
  }
}

export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended, or is in another group, which is ended as such.
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Looks often until it is so; the test's own limit ends what never is. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((done) => setTimeout(done, 50));
}
