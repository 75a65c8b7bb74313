import { createServer, type RequestListener, type Server } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LoadSpec } from "../../../loadgen/load-spec";
import { RemoteLoad } from "../../../targets/stack/remote-load";
import { TargetError } from "../../../targets/target-error";
import { makeTrialResult } from "../../tuning/make";

const spec = { id: "a b", addresses: ["127.0.0.1:9"], imageFolder: "here" } as unknown as LoadSpec;
const { load: finished } = makeTrialResult({ perAddress: { "10.0.0.1:8001": 490 } });

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
}

interface Answer {
  readonly status?: number;
  readonly body?: unknown;
}

/** A controller that answers by the test's word; its clock is `aheadMs` ahead. */
async function controller(answer: (call: Call, count: number) => Answer | null, aheadMs = 0) {
  const calls: Call[] = [];
  const listener: RequestListener = (request, response) => {
    let text = "";
    request.on("data", (part: Buffer) => (text += part.toString()));
    request.on("end", () => {
      if (request.url === "/healthz")
        return response.end(JSON.stringify({ ok: true, unixMs: Date.now() + aheadMs }));
      const body: unknown = text === "" ? null : JSON.parse(text);
      const call = { method: request.method ?? "", path: request.url ?? "", body };
      calls.push(call);
      const given = answer(call, calls.length);
      if (given === null) return response.destroy();
      response.statusCode = given.status ?? 200;
      response.end(JSON.stringify(given.body ?? {}));
    });
  };
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const load = new RemoteLoad({
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    token: "t",
    imageFolder: "/there",
    inClusterAddress: () => "10.0.0.1:8001",
    pollMs: 5,
    patienceMs: 2000,
  });
  return { load, calls };
}

const running = { body: { state: "running", progress: null } };
const done = { body: { state: "finished", result: { ...finished, measuredFromUnixMs: 50_000 } } };

describe("the controller of a stack", () => {
  it("measures at the pods' own addresses with its own images, and answers with the addresses from here", async () => {
    const { load, calls } = await controller((_call, count) => (count < 3 ? running : done));
    const result = await load.run(spec);
    expect(result.perAddress).toEqual({ "127.0.0.1:9": 490 });
    expect(calls[0]).toMatchObject({
      method: "PUT",
      path: "/measurements/a%20b",
      body: { addresses: ["10.0.0.1:8001"], imageFolder: "/there" },
    });
    expect(calls.slice(1).map(({ method }) => method)).toEqual(["GET", "GET"]);
  });

  it("has a clock of its own, which is taken out", async () => {
    const { load } = await controller(() => done, 40_000);
    const { offsetMs, uncertaintyMs } = await load.clockOffset();
    expect(Math.abs(offsetMs - 40_000)).toBeLessThanOrEqual(uncertaintyMs + 2);
    expect(Math.abs((await load.run(spec)).measuredFromUnixMs - 10_000)).toBeLessThan(2000);
  });

  it("is asked again while it cannot be reached, and loses no measurement by that", async () => {
    const { load, calls } = await controller((_call, count) =>
      count === 1 ? running : count < 5 ? null : count === 5 ? { status: 503 } : done,
    );
    expect((await load.run(spec)).total.ok).toBe(490);
    expect(calls.filter(({ method }) => method === "PUT")).toHaveLength(1);
  });

  it("keeps what there is no figure of: JSON has no NaN", async () => {
    const response = { ...finished.response, count: 0, p95Ms: NaN };
    const { load } = await controller(() => ({
      body: { state: "finished", result: { ...finished, response } },
    }));
    expect((await load.run(spec)).response).toMatchObject({ count: 0, p95Ms: NaN });
  });

  it("says that a measurement is lost, failed, refused, or not permitted", async () => {
    const of = async (answer: Answer): Promise<unknown> =>
      (await controller(() => answer)).load.run(spec).catch((error: unknown) => error);
    expect(String(await of({ status: 404 }))).toMatch(/LostMeasurementError: .*replaced during the trial/);
    expect(String(await of({ body: { state: "failed", error: "no load worker is registered" } }))).toMatch(
      /the load controller: no load worker is registered/,
    );
    expect(await of({ status: 400, body: { error: "bad" } })).toBeInstanceOf(TargetError);
    expect(String(await of({ status: 401 }))).toMatch(/refuses the token of the stack's secret/);
  });

  it("stops the measurement when the sweep is interrupted", async () => {
    const { load, calls } = await controller(() => running);
    const abort = new AbortController();
    setTimeout(() => abort.abort(new Error("interrupted")), 50);
    await expect(load.run(spec, undefined, abort.signal)).rejects.toThrow("interrupted");
    expect(calls.at(-1)!.method).toBe("DELETE");
  });
});
