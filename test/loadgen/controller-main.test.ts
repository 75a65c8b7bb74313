import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { MeasurementState } from "../../loadgen/controller-api";
import { FakeWorker } from "./support/fake-worker";
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

interface Controller {
  readonly child: ChildProcess;
  readonly url: string;
  /** For workers. */
  readonly port: number;
}

/** A controller on free ports, as soon as it has said which. */
async function startController(...args: readonly string[]): Promise<Controller> {
  const child = start("controller-main.ts", ["--port", "0", "--http-port", "0", "--any-target", ...args]);
  const line = await new Promise<string>((resolve) =>
    createInterface({ input: child.stdout! }).once("line", resolve),
  );
  const { port, httpPort } = JSON.parse(line) as { port: number; httpPort: number };
  return { child, port, url: `http://127.0.0.1:${httpPort}` };
}

/** Starts a worker and waits until the controller has it. */
async function addWorker({ port, url }: Controller, name: string): Promise<void> {
  start("worker-main.ts", ["--controller", `127.0.0.1:${port}`, "--name", name]);
  for (let tries = 0; tries < 200; tries++) {
    const health = (await (await fetch(`${url}/healthz`)).json()) as { workers: number };
    if (health.workers === 1) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the worker did not register");
}

beforeAll(async () => {
  images = await imageFolder(2);
  server = await InferServer.listen();
  const controller = await startController();
  api = controller.url;
  await addWorker(controller, "w1");
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

  it("refuses calls without the token, and unknown measurements", async () => {
    expect((await fetch(`${api}/workers`)).status).toBe(401);
    expect((await fetch(`${api}/workers`, { headers: { authorization: "Bearer nope" } })).status).toBe(401);
    expect((await fetch(`${api}/measurements/none`, { headers })).status).toBe(404);
  });

  it("a page of another name or origin gets nothing, with the right token too (DNS rebinding)", async () => {
    const { port } = new URL(api);
    const ask = (more: Record<string, string>, path = "/workers", method = "GET"): Promise<number> =>
      new Promise((resolve, reject) => {
        const options = { host: "127.0.0.1", port, path, method, headers: { ...headers, ...more } };
        request(options, (response) => {
          response.resume();
          resolve(response.statusCode!);
        })
          .on("error", reject)
          .end();
      });
    expect(await ask({ host: `localhost:${port}` })).toBe(200);
    expect(await ask({ host: `evil.example:${port}` })).toBe(421);
    expect(await ask({ host: `evil.example:${port}` }, "/")).toBe(421);
    expect(await ask({ host: "localhost.evil.example" })).toBe(421);
    expect(await ask({ host: `127.0.0.1:${port}`, origin: `http://127.0.0.1:${port}` })).toBe(200);
    for (const origin of ["http://evil.example", "null", `http://127.0.0.1:${Number(port) + 1}`])
      expect(await ask({ host: `127.0.0.1:${port}`, origin }, "/console/load", "POST")).toBe(403);
    expect(await ask({ host: "10.1.2.3", authorization: "" }, "/metrics")).toBe(200);
    for (const [path, method] of [
      ["/console/events", "GET"],
      ["/console/load", "POST"],
      ["/console/load/x/stop", "POST"],
      ["/console/runs/x/download/csv", "GET"],
      ["/measurements/x", "DELETE"],
    ] as const)
      expect(await ask({ authorization: "Bearer nope" }, path, method)).toBe(401);
  });

  it("the console's files need no token and let nothing else run on the page", async () => {
    const page = await fetch(`${api}/`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toMatch(/default-src 'none'.*frame-ancestors 'none'/);
    expect(await page.text()).not.toContain(token);
    expect((await fetch(`${api}/uplot.js`)).headers.get("content-type")).toMatch(/javascript/);
  });

  it("a finished measurement is known after a restart of the controller, one that ran is not", async () => {
    const state = await mkdtemp(join(tmpdir(), "controller-state-"));
    const ask = async (url: string, id: string): Promise<{ status: number; state?: string }> => {
      const response = await fetch(`${url}/measurements/${id}`, { headers });
      return { ...((await response.json()) as { state?: string }), status: response.status };
    };
    const put = (url: string, id: string, measureS: number) => {
      const spec = loadSpec({ addresses: [server.address], imageFolder: images, id, measureS });
      return fetch(`${url}/measurements/${id}`, { method: "PUT", headers, body: JSON.stringify(spec) });
    };
    const before = await startController("--state-dir", state);
    await addWorker(before, "w");
    await put(before.url, "done", 0.3);
    while ((await ask(before.url, "done")).state !== "finished")
      await new Promise((resolve) => setTimeout(resolve, 50));
    await put(before.url, "cut", 60);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const gone = new Promise((resolve) => before.child.once("exit", resolve));
    before.child.kill("SIGKILL");
    await gone;
    const after = await startController("--state-dir", state);
    expect(await ask(after.url, "done")).toMatchObject({ status: 200, state: "finished" });
    expect((await ask(after.url, "cut")).status).toBe(404);
    await rm(state, { recursive: true, force: true });
  });

  it("SIGTERM during a measurement: its result is handed out, kept over the restart, and marked as ended early", async () => {
    const state = await mkdtemp(join(tmpdir(), "controller-state-"));
    const before = await startController("--state-dir", state);
    await addWorker(before, "w");
    const stateOf = async (url: string): Promise<MeasurementState> =>
      (await (await fetch(`${url}/measurements/evicted`, { headers })).json()) as MeasurementState;
    const put = (url: string, id: string) => {
      const spec = loadSpec({
        addresses: [server.address],
        imageFolder: images,
        id,
        warmupS: 0,
        measureS: 600,
      });
      return fetch(`${url}/measurements/${id}`, { method: "PUT", headers, body: JSON.stringify(spec) });
    };
    await put(before.url, "evicted");
    let seen = await stateOf(before.url);
    while (seen.state === "running" && (seen.progress?.total.planned ?? 0) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      seen = await stateOf(before.url);
    }
    const gone = new Promise((resolve) => before.child.once("exit", resolve));
    before.child.kill("SIGTERM");
    while (seen.state === "running") {
      await new Promise((resolve) => setTimeout(resolve, 50));
      seen = await stateOf(before.url);
    }
    // What is asked meanwhile waits for the successor.
    expect((await put(before.url, "next")).status).toBe(503);
    expect(await gone).toBe(0);
    const after = await startController("--state-dir", state);
    expect(await stateOf(after.url)).toEqual(seen);
    if (seen.state !== "finished") throw new Error(`it is ${seen.state}`);
    expect(seen.result).toMatchObject({ valid: false, stop: { interrupted: true } });
    expect(seen.result.invalidReasons[0]).toMatch(/the load controller had to end \(SIGTERM\)$/);
    expect(seen.result.total.ok).toBe(seen.result.total.planned);
    expect(seen.result.total.planned).toBeGreaterThan(0);
    await rm(state, { recursive: true, force: true });
  });

  it("says what is wrong with a spec", async () => {
    const spec = loadSpec({ addresses: [server.address], imageFolder: images, id: "m2", measureS: -1 });
    await fetch(`${api}/measurements/m2`, { method: "PUT", headers, body: JSON.stringify(spec) });
    await new Promise((resolve) => setTimeout(resolve, 200));
    const state = (await (await fetch(`${api}/measurements/m2`, { headers })).json()) as MeasurementState;
    expect(state).toMatchObject({ state: "failed" });
    expect(state.state === "failed" && state.error).toMatch(/measureS/);
  });

  it.each<[string, unknown, RegExp]>([
    ["null", null, /no load spec: request: /],
    ["a list", [], /no load spec: request: /],
    ["half a spec", { id: "m3", addresses: "a:1" }, /addresses: .*modelName: .*shape: /],
    [
      "a shape that is none",
      { ...loadSpec({ addresses: [], imageFolder: "" }), shape: null },
      /^[^;]*shape: /,
    ],
  ])("a body that is no spec is refused by its fields: %s", async (_, body, error) => {
    const response = await fetch(`${api}/measurements/m3`, {
      method: "PUT",
      headers,
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(400);
    expect(((await response.json()) as { error: string }).error).toMatch(error);
    expect((await fetch(`${api}/measurements/m3`, { headers })).status).toBe(404);
  });

  it("whatever is wrong with a call, the answer says it in the same place", async () => {
    const post = (path: string, body: string) => fetch(`${api}${path}`, { method: "POST", headers, body });
    const errorOf = async (answer: Promise<Response>): Promise<string> => {
      const { error, ...rest } = (await (await answer).json()) as { error: string };
      expect(rest).toEqual({});
      return error;
    };
    expect(await errorOf(post("/console/load", "{"))).toMatch(/not valid JSON/);
    expect(await errorOf(post("/console/load", ""))).toMatch(/cannot be empty/);
    expect(await errorOf(post("/console/load", "[]"))).toMatch(/expected object, received array/);
    expect(await errorOf(fetch(`${api}/nowhere?token=x`, { headers }))).toBe("there is no GET /nowhere");
    expect(await errorOf(fetch(`${api}/console/runs/%zz`, { headers }))).toMatch(
      /is not a valid url component/,
    );
  });

  it("Stop while the workers get ready: it is over at once, and says by what", async () => {
    const { url, port } = await startController();
    const worker = new FakeWorker(port, token, "slow starter");
    try {
      worker.register();
      worker.onPrepare = () => undefined;
      const spec = loadSpec({ addresses: ["127.0.0.1:1"], imageFolder: images, id: "unwanted" });
      const put = () =>
        fetch(`${url}/measurements/unwanted`, { method: "PUT", headers, body: JSON.stringify(spec) });
      while (((await (await fetch(`${url}/healthz`)).json()) as { workers: number }).workers === 0)
        await new Promise((resolve) => setTimeout(resolve, 50));
      expect((await put()).status).toBe(202);
      while (!worker.received.some(({ body }) => body === "prepare"))
        await new Promise((resolve) => setTimeout(resolve, 20));
      const stop = () =>
        fetch(`${url}/console/load/unwanted/stop`, {
          method: "POST",
          headers: { authorization: headers.authorization },
        });
      const first = await stop();
      expect([first.status, await first.json()]).toEqual([200, { stopped: true }]);
      expect((await stop()).status).toBe(409);
      const state = await (await fetch(`${url}/measurements/unwanted`, { headers })).json();
      expect(state).toEqual({ state: "failed", error: "stopped at the console before the load began" });
    } finally {
      worker.close();
    }
  });

  it("without the token not even a huge body is read; with it, one over 24 MB is refused", async () => {
    // It only says how much would come: who waits for the body would wait for ever.
    const send = (authorization: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const { port } = new URL(api);
        const length = 25 * 1024 * 1024;
        const call = request(
          {
            ...{ host: "127.0.0.1", port, path: "/measurements/big", method: "PUT" },
            headers: { authorization, "content-type": "application/json", "content-length": length },
          },
          (response) => {
            resolve(response.statusCode!);
            call.destroy();
          },
        );
        call.on("error", reject).flushHeaders();
      });
    expect(await send("Bearer nope")).toBe(401);
    expect(await send(headers.authorization)).toBe(413);
  });

  it.each<[string, readonly string[], RegExp]>([
    ["without a token", ["--any-target"], /LOADGEN_TOKEN is not set/],
    ["without a word about targets", [], /name each server that may be loaded with --target HOST:PORT/],
    ["with targets and all others, too", ["--any-target", "--target", "a:1"], /or allow every one/],
    ["with a target that is none", ["--target", "nowhere"], /"nowhere" is no host:port/],
    ["with a limit that is none", ["--any-target", "--max-rate", "-5"], /above 0/],
  ])("does not start %s", async (_, args, message) => {
    const child = spawn(process.execPath, ["--import", "tsx", join(room, "controller-main.ts"), ...args], {
      env: { ...process.env, LOADGEN_TOKEN: message.source.startsWith("LOADGEN") ? "" : token },
    });
    let said = "";
    child.stderr.on("data", (text: Buffer) => (said += text.toString()));
    expect(await new Promise((resolve) => child.once("close", resolve))).toBeGreaterThan(0);
    expect(said).toMatch(message);
  });
});
