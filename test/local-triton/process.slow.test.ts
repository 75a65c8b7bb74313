import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { KserveClient } from "../../kserve/client";
import { eventually, inferSmall, makeRepository, sleep } from "./support";

const MAIN = join(__dirname, "..", "..", "local-triton", "main.ts");

interface Running {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly stderr: () => string;
  /** The line that says it is ready. */
  readonly ready: Promise<Record<string, unknown>>;
}

function start(args: readonly string[], command: readonly string[] = []): Running {
  const [program = process.execPath, ...before] = command;
  const child = spawn(program, [...before, "--import", "tsx", MAIN, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const exited = new Promise<number | null>((resolve) => child.once("exit", (code) => resolve(code)));
  onTestFinished(() => void child.kill("SIGKILL"));
  const ready = new Promise<Record<string, unknown>>((resolve, reject) => {
    child.stdout.on("data", (chunk: Buffer) => {
      stdout += chunk.toString();
      if (stdout.includes("\n")) resolve(JSON.parse(stdout.split("\n")[0]!) as Record<string, unknown>);
    });
    void exited.then((code) => reject(new Error(`it ended with ${code}: ${stderr}`)));
  });
  ready.catch(() => undefined);
  return { child, exited, stderr: () => stderr, ready };
}

function repositoryArgs(): string[] {
  return [
    "--model-repository",
    makeRepository([{}]),
    "--grpc-port",
    "0",
    "--http-port",
    "0",
    "--metrics-port",
    "0",
  ];
}

describe("the server as a process", () => {
  it("prints its ports, serves, and ends cleanly on SIGTERM", async () => {
    const { ready, child, exited } = start([
      ...repositoryArgs(),
      ...[
        "--model-control-mode",
        "explicit",
        "--load-model",
        "sim",
        "--time-dilation",
        "2.5",
        "--executor",
        "simulated-t4",
      ],
    ]);
    const line = await ready;
    expect(line).toMatchObject({ ready: true, pid: child.pid, executor: "simulated-t4", timeDilation: 2.5 });
    const client = new KserveClient(`127.0.0.1:${String(line["grpcPort"])}`);
    onTestFinished(() => client.close());
    expect((await inferSmall(client)).modelName).toBe("sim");
    const health = await fetch(`http://127.0.0.1:${String(line["httpPort"])}/v2/health/ready`);
    expect(health.status).toBe(200);
    const metrics = await fetch(`http://127.0.0.1:${String(line["metricsPort"])}/metrics`);
    expect(await metrics.text()).toContain("local_triton_time_dilation 2.5");
    const from = performance.now();
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    expect(performance.now() - from).toBeGreaterThan(1900);
  });

  it("ends when its parent's end of stdin closes, if asked", async () => {
    const { ready, child, exited } = start([...repositoryArgs(), "--exit-with-parent"]);
    await ready;
    child.stdin!.destroy();
    expect(await exited).toBe(0);
  });

  it("ends when its parent is killed, if asked", async () => {
    // A parent that starts the server without a pipe to its stdin, says its pid, and is then killed.
    const parent = spawn(
      process.execPath,
      [
        "-e",
        `const { spawn } = require("node:child_process");
         const child = spawn(process.execPath, ${JSON.stringify(["--import", "tsx", MAIN, ...repositoryArgs(), "--exit-with-parent"])}, { stdio: ["ignore", "pipe", "inherit"] });
         child.stdout.once("data", () => console.log(child.pid));`,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    onTestFinished(() => void parent.kill("SIGKILL"));
    const pid = await new Promise<number>((resolve) =>
      parent.stdout.once("data", (chunk: Buffer) => resolve(Number(chunk.toString()))),
    );
    const isAlive = (): boolean => {
      try {
        process.kill(pid, 0);
        return true;
      } catch {
        return false;
      }
    };
    await sleep(600);
    expect(isAlive()).toBe(true);
    parent.kill("SIGKILL");
    await eventually(() => expect(isAlive()).toBe(false));
  });

  it("names what is wrong with its options or its start, and ends with 2 or 1", async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void taken.close());
    const port = (taken.address() as { port: number }).port;
    const cases: readonly (readonly [args: string[], code: number, text: RegExp])[] = [
      [[], 2, /required option '--model-repository <dir>'/],
      [[...repositoryArgs(), "--grpc-port", "70000"], 2, /A port is a number from 0/],
      [[...repositoryArgs(), "--time-dilation", "0.5"], 2, /a number >= 1/],
      [[...repositoryArgs(), "--executor", "gpu"], 2, /Allowed choices are simulated-t4/],
      [
        ["--model-repository", "/nowhere/at/all"],
        1,
        /local-triton: The model repository \/nowhere\/at\/all is no folder/,
      ],
      [[...repositoryArgs(), "--grpc-port", String(port)], 1, /gRPC port 127\.0\.0\.1:\d+ cannot be opened/],
      [
        [...repositoryArgs(), "--model-control-mode", "explicit", "--load-model", "nope"],
        1,
        /failed to load 'nope'/,
      ],
    ];
    for (const [args, code, text] of cases) {
      const { exited, stderr } = start(args);
      expect(await exited, stderr()).toBe(code);
      expect(stderr()).toMatch(text);
    }
  });
});
