/** The load generator's image without Docker: its sources compiled, its assets copied as the Dockerfile says, its worker run. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const project = join(__dirname, "../..");
let app: string;

beforeAll(() => {
  app = mkdtempSync(join(tmpdir(), "load-image-"));
  const tsc = join(project, "node_modules/typescript/bin/tsc");
  const compiled = spawnSync(
    process.execPath,
    [tsc, "--project", "loadgen/tsconfig.image.json", "--outDir", app],
    {
      cwd: project,
      encoding: "utf8",
    },
  );
  if (compiled.status !== 0) throw new Error(compiled.stdout);
  const dockerfile = readFileSync(join(project, "loadgen/Dockerfile"), "utf8");
  const lastStage = dockerfile.slice(dockerfile.lastIndexOf("FROM "));
  for (const [, source = "", target = ""] of lastStage.matchAll(/^COPY ([a-z][\w/-]*) ([\w/-]+)$/gm)) {
    cpSync(join(project, source), join(app, target), { recursive: true });
  }
  symlinkSync(join(project, "node_modules"), join(app, "node_modules"));
}, 120_000);
afterAll(() => rmSync(app, { recursive: true, force: true }));

it("runs the worker, which looks for its controller and ends on SIGTERM", async () => {
  const args = ["loadgen/worker-main.js", "--controller", "127.0.0.1:9", "--name", "w"];
  const worker = spawn(process.execPath, args, {
    cwd: app,
    env: { PATH: process.env.PATH, LOADGEN_TOKEN: "t" },
  });
  try {
    const output = await new Promise<string>((resolve, reject) => {
      let text = "";
      worker.stderr.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        if (text.includes("127.0.0.1:9")) resolve(text);
      });
      worker.once("exit", () => reject(new Error(`the worker ended: ${text}`)));
    });
    expect(output).toContain("UNAVAILABLE");
    worker.removeAllListeners("exit");
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    worker.kill("SIGTERM");
    expect(await ended).toBe(0);
  } finally {
    worker.kill("SIGKILL");
  }
});

it("runs the controller, whose console is complete, and which ends on SIGTERM", async () => {
  const args = [
    "loadgen/controller-main.js",
    "--any-target",
    "--port",
    "0",
    "--http-port",
    "0",
    "--state-dir",
    join(app, "state"),
  ];
  const controller = spawn(process.execPath, args, {
    cwd: app,
    env: { PATH: process.env.PATH, LOADGEN_TOKEN: "t" },
  });
  try {
    const line = await new Promise<string>((resolve, reject) => {
      controller.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString()));
      controller.stderr.once("data", (chunk: Buffer) => reject(new Error(chunk.toString())));
    });
    const { httpPort } = JSON.parse(line) as { httpPort: number };
    for (const path of [
      "/",
      "/console.js",
      "/console.css",
      "/form.js",
      "/charts.js",
      "/uplot.js",
      "/uplot.css",
      "/healthz",
    ]) {
      const response = await fetch(`http://127.0.0.1:${httpPort}${path}`);
      expect([path, response.status]).toEqual([path, 200]);
    }
    const ended = new Promise((resolve) => controller.once("exit", resolve));
    controller.kill("SIGTERM");
    expect(await ended).toBe(0);
  } finally {
    controller.kill("SIGKILL");
  }
});

it("refuses to run without the token", () => {
  const { status, stderr } = spawnSync(
    process.execPath,
    ["loadgen/worker-main.js", "--controller", "127.0.0.1:9"],
    {
      cwd: app,
      encoding: "utf8",
      env: { PATH: process.env.PATH },
    },
  );
  expect(status).toBe(2);
  expect(stderr).toContain("LOADGEN_TOKEN");
});
