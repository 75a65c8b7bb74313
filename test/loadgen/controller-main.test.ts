import { spawn, type ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MeasurementState } from "../../loadgen/controller-api";
import { InferServer } from "./support/infer-server";
import { imageFolder, loadSpec } from "./support/spec";

const token = "test-token";
const room = join(__dirname, "../../loadgen");
const processes: ChildProcess[] = [];
let server: InferServer;
let images: string;
let api: string;

function start(file: string, args: readonly string[]): ChildProcess {
  const child = spawn(process.execPath, ["--import", "tsx", join(room, file), ...args], {
    env: { ...process.env, LOADGEN_TOKEN: token },
    stdio: ["pipe", "pipe", "inherit"],
  });
  processes.push(child);
  return child;
}

beforeAll(async () => {
  images = await imageFolder(2);
  server = await InferServer.listen();
  const controller = start("controller-main.ts", ["--port", "0", "--http-port", "0"]);
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: controller.stdout! }).once("line", resolve),
  );
  const ports = JSON.parse(line) as { port: number; httpPort: number };
  api = `http://127.0.0.1:${ports.httpPort}`;
  start("worker-main.ts", ["--controller", `127.0.0.1:${ports.port}`, "--name", "w1"]);
  for (let tries = 0; tries < 200; tries++) {
    const health = (await (await fetch(`${api}/healthz`)).json()) as { workers: number };
    if (health.workers === 1) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the worker did not register");
}, 60_000);

afterAll(async () => {
  for (const child of processes) child.kill("SIGKILL");
  await server.close();
  await rm(images, { recursive: true, force: true });
});

const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };

describe("the controller as a process", () => {
  it("runs a measurement by id over HTTP and keeps its result", async () => {
    const spec = loadSpec({
      addresses: [server.address],
      imageFolder: images,
      id: "m1",
      measureS: 1,
      shape: { kind: "constant", ratePerS: 50 },
    });
    const put = () => fetch(`${api}/measurements/m1`, { method: "PUT", headers, body: JSON.stringify(spec) });
    expect((await put()).status).toBe(202);
    let state: MeasurementState = { state: "running", progress: null };
    while (state.state === "running") {
      await new Promise((resolve) => setTimeout(resolve, 100));
      state = (await (await fetch(`${api}/measurements/m1`, { headers })).json()) as MeasurementState;
    }
    expect(state.state === "finished" && state.result.total.planned).toBe(50);
    // The same id again measures nothing: it answers what is known.
    const requests = server.requests;
    expect((await put()).status).toBe(200);
    expect(server.requests).toBe(requests);
    const metrics = await (await fetch(`${api}/metrics`)).text();
    expect(metrics).toMatch(/^loadgen_response_seconds_bucket\{le="0.1"\} \d+$/m);
    expect(metrics).toMatch(/^loadgen_workers 1$/m);
  });

  it("refuses calls without the token, with a foreign host name, and unknown measurements", async () => {
    expect((await fetch(`${api}/workers`)).status).toBe(401);
    expect((await fetch(`${api}/workers`, { headers: { authorization: "Bearer nope" } })).status).toBe(401);
    expect((await fetch(`${api}/measurements/none`, { headers })).status).toBe(404);
    const foreign = await fetch(`${api.replace("127.0.0.1", "127.0.0.2")}/workers`, { headers }).catch(
      () => null,
    );
    expect(foreign === null || foreign.status === 421).toBe(true);
  });

  it("says what is wrong with a spec", async () => {
    const spec = loadSpec({ addresses: [server.address], imageFolder: images, id: "m2", measureS: -1 });
    await fetch(`${api}/measurements/m2`, { method: "PUT", headers, body: JSON.stringify(spec) });
    await new Promise((resolve) => setTimeout(resolve, 200));
    const state = (await (await fetch(`${api}/measurements/m2`, { headers })).json()) as MeasurementState;
    expect(state).toMatchObject({ state: "failed" });
    expect(state.state === "failed" && state.error).toMatch(/measureS/);
  });

  it("does not start without a token", async () => {
    const child = spawn(process.execPath, ["--import", "tsx", join(room, "controller-main.ts")], {
      env: { ...process.env, LOADGEN_TOKEN: "" },
    });
    expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(2);
  });
});
