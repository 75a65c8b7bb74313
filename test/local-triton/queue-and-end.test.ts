import { Client } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import type { ModelConfig } from "../../model-repo/config-types";
import { parsePrometheusText, sumOf } from "../../tuning/prometheus-text";
import { eventually, rawClient, type RawAnswer, rawInfer, sleep, startServer, tensor } from "./support";

function policy(change: object, maxBatchSize = 1): ModelConfig {
  return { max_batch_size: maxBatchSize, dynamic_batching: { default_queue_policy: change } };
}

function ask(client: Client, parameters: object = {}, deadlineMs?: number): Promise<RawAnswer> {
  const request = {
    model_name: "sim",
    parameters: parameters as Record<string, never>,
    inputs: [{ name: "input", datatype: "FP32", shape: [1, 4, 4, 3] }],
    raw_input_contents: [tensor(48)],
  };
  return rawInfer(client, request, deadlineMs);
}

const FULL = "[request id: <id_unknown>] Exceeds maximum queue size";

/** Answers by code and text. */
function tally(answers: readonly RawAnswer[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { code, message } of answers) {
    const key = message === "" ? code : `${code}: ${message}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

async function failures(metrics: () => Promise<string>, reason: string): Promise<number | null> {
  return sumOf(parsePrometheusText(await metrics()), "nv_inference_request_failure", { reason });
}

describe("default_queue_policy", () => {
  it("refuses what does not fit the queue at once, and late what waits too long", async () => {
    const reject = { timeout_action: "REJECT", default_timeout_microseconds: 100_000, max_queue_size: 4 };
    const { grpcAddress, metrics, client } = await startServer([
      { gpuMsPerBatch: 400, config: policy(reject) },
    ]);
    const raw = rawClient(grpcAddress);
    const answers = await Promise.all(Array.from({ length: 16 }, () => ask(raw)));
    // As recorded with a batch of 200 ms: one is executed, four wait and expire, the others find the queue full.
    expect(tally(answers)).toEqual({
      OK: 1,
      "UNAVAILABLE: Request timeout expired": 4,
      [`UNAVAILABLE: ${FULL}`]: 11,
    });
    expect(await failures(metrics, "REJECTED")).toBe(4);
    expect(await failures(metrics, "OTHER")).toBe(0);
    const [stats] = await client.modelStatistics("sim");
    expect(stats!.inference_stats).toMatchObject({ success: { count: 1 }, fail: { count: 4 } });
  });

  it("serves what waits too long after all others under DELAY", async () => {
    const delay = { timeout_action: "DELAY", default_timeout_microseconds: 20_000 };
    const { grpcAddress } = await startServer([{ gpuMsPerBatch: 30, config: policy(delay) }]);
    const raw = rawClient(grpcAddress);
    expect(tally(await Promise.all(Array.from({ length: 6 }, () => ask(raw))))).toEqual({ OK: 6 });
  });

  it("takes a request's own timeout only where the policy allows it", async () => {
    const timeout = { timeout: { int64_param: 20_000 } };
    for (const allowed of [false, true]) {
      const config = policy({ allow_timeout_override: allowed });
      const { grpcAddress } = await startServer([{ gpuMsPerBatch: 300, config }]);
      const raw = rawClient(grpcAddress);
      const first = ask(raw);
      await sleep(50);
      const second = await ask(raw, timeout);
      expect(second.code, `allowed: ${allowed}`).toBe(allowed ? "UNAVAILABLE" : "OK");
      expect((await first).code).toBe("OK");
    }
  });
});

describe("cancelled requests", () => {
  it("leave the queue and count as CANCELED; an executing one counts as a success", async () => {
    const { grpcAddress, metrics, client } = await startServer([
      { gpuMsPerBatch: 600, config: { max_batch_size: 1 } },
    ]);
    const raw = rawClient(grpcAddress);
    const executing = ask(raw, {}, 150);
    await sleep(50);
    const waiting = [ask(raw, {}, 150), ask(raw, {}, 150)];
    const answers = await Promise.all([executing, ...waiting]);
    expect(answers.map((answer) => answer.code)).toEqual(new Array(3).fill("DEADLINE_EXCEEDED"));
    await eventually(async () => expect(await failures(metrics, "CANCELED")).toBe(2));
    await eventually(async () =>
      expect((await client.modelStatistics("sim"))[0]!.inference_stats!.success!.count).toBe(1),
    );
    expect((await client.modelStatistics("sim"))[0]!.execution_count).toBe(1);
  });
});

describe("shutdown", () => {
  it("goes as Triton's: HTTP first, then new requests refused, then the models, then the port", async () => {
    const { server, grpcAddress, http, metrics, client } = await startServer(
      [{ gpuMsPerBatch: 400, config: { max_batch_size: 1 } }],
      { shutdownStepMs: 500 },
    );
    const raw = rawClient(grpcAddress);
    const inside = [ask(raw), ask(raw), ask(raw)];
    await eventually(async () =>
      expect(await metrics()).toContain('nv_inference_pending_request_count{model="sim",version="1"} 2'),
    );
    const from = performance.now();
    const ended = server.shutdown().then(() => performance.now() - from);
    await eventually(() => expect(http("/v2/health/ready")).rejects.toThrow());
    await expect(client.serverReady()).rejects.toThrow("UNAVAILABLE: Server exiting");
    expect(await metrics()).toContain("nv_inference_request_success");
    expect(await ask(raw)).toMatchObject({
      code: "UNAVAILABLE",
      message:
        "[request id: <id_unknown>] Server is stopping, scheduler for model has stopped accepting new inference requests",
    });
    expect(tally(await Promise.all(inside))).toEqual({ OK: 3 });
    await eventually(async () =>
      expect(await ask(raw)).toMatchObject({
        code: "NOT_FOUND",
        message: "Request for unknown model: 'sim' has no available versions",
      }),
    );
    await expect(metrics()).rejects.toThrow();
    expect(await ended).toBeGreaterThan(990);
    expect((await ask(raw, {}, 300)).code).toMatch(/UNAVAILABLE|DEADLINE_EXCEEDED/);
  });

  it("waits for requests that are inside longer than its two steps", async () => {
    const { server, grpcAddress, client } = await startServer([{ gpuMsPerBatch: 600 }], {
      shutdownStepMs: 100,
    });
    const inside = ask(rawClient(grpcAddress));
    await eventually(() => expect(server.inFlight).toBe(1));
    client.close();
    const from = performance.now();
    const ended = server.shutdown();
    expect((await inside).code).toBe("OK");
    await ended;
    expect(performance.now() - from).toBeGreaterThan(400);
  });
});

describe("start", () => {
  it("names the port that is in use", async () => {
    const { server, repository } = await startServer([{}]);
    const { grpc, http, metrics } = server.ports;
    const start = (ports: object) => startServer([{}], { modelRepository: repository, ...ports });
    await expect(start({ grpcPort: grpc })).rejects.toThrow(`gRPC port 127.0.0.1:${grpc} cannot be opened`);
    await expect(start({ httpPort: http })).rejects.toThrow(`HTTP port 127.0.0.1:${http} cannot be opened`);
    await expect(start({ metricsPort: metrics })).rejects.toThrow(`Metrics port 127.0.0.1:${metrics}`);
  });

  it("names the option that is wrong", async () => {
    await expect(startServer([], { modelRepository: "/nowhere/at/all" })).rejects.toThrow(
      "The model repository /nowhere/at/all is no folder",
    );
    await expect(startServer([{}], { modelControlMode: "none", loadModels: ["sim"] })).rejects.toThrow(
      "--load-model needs --model-control-mode explicit",
    );
    await expect(startServer([{}], { timeDilation: 0.5 })).rejects.toThrow("The time dilation is 0.5");
  });
});
