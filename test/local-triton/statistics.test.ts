import { describe, expect, it } from "vitest";
import { parsePrometheusText, sumOf } from "../../tuning/prometheus-text";
import families from "./fixtures/metrics-families.json";
import { inferSmall, sleep, startServer, type TestServer } from "./support";

async function counter(server: TestServer, name: string): Promise<number> {
  const value = sumOf(parsePrometheusText(await server.metrics()), name, {});
  if (value === null) throw new Error(`no metric ${name}`);
  return value;
}

/** One instance, 10 ms of host phase an image, then a GPU phase of 20 ms and 5 ms an image; batches wait 60 ms. */
const BATCHED = {
  hostMsPerImage: 10,
  gpuMsPerBatch: 20,
  gpuMsPerImage: 5,
  config: { dynamic_batching: { max_queue_delay_microseconds: 60_000 } },
};

describe("/metrics", () => {
  it("prints Triton's families in its order, then this server's own", async () => {
    const { metrics } = await startServer([{}]);
    const lines = (await metrics()).split("\n").filter((line) => line.startsWith("#"));
    const tritons = lines.filter((line) => !line.includes(" local_triton_"));
    const withoutGpu = tritons.filter((line) => !/nv_gpu_|nv_energy/.test(line));
    expect(withoutGpu).toEqual(families.lines);
    expect(lines.slice(tritons.length).every((line) => line.includes(" local_triton_"))).toBe(true);
  });

  it("has every failure reason from the start and labels the GPU's gauges", async () => {
    const { metrics } = await startServer([{}]);
    const samples = parsePrometheusText(await metrics());
    const reasons = samples.filter((sample) => sample.name === "nv_inference_request_failure");
    expect(reasons.map((sample) => sample.labels["reason"]).sort()).toEqual([
      "BACKEND",
      "CANCELED",
      "OTHER",
      "REJECTED",
    ]);
    for (const name of ["nv_gpu_utilization", "nv_gpu_memory_used_bytes", "nv_gpu_power_limit"]) {
      const [gauge] = samples.filter((sample) => sample.name === name);
      expect(Object.keys(gauge!.labels)).toEqual(["gpu_uuid"]);
    }
  });
});

describe("statistics", () => {
  it("charges every request of a batch the whole batch's time", async () => {
    const server = await startServer([BATCHED]);
    await Promise.all([
      inferSmall(server.client, 1),
      inferSmall(server.client, 2, 2),
      inferSmall(server.client, 3),
    ]);
    const [stats] = await server.client.modelStatistics("sim");
    expect(stats).toMatchObject({ inference_count: 4, execution_count: 1 });
    expect(stats!.inference_stats).toMatchObject({
      success: { count: 3 },
      queue: { count: 3 },
      // Four images: 40 ms of copying, and 40 ms on the GPU, for each of three requests.
      compute_input: { count: 3, ns: 3 * 40e6 },
      compute_infer: { count: 3, ns: 3 * 40e6 },
      compute_output: { count: 3, ns: 0 },
      fail: { count: 0, ns: 0 },
    });
    expect(stats!.batch_stats).toMatchObject([
      { batch_size: 4, compute_input: { count: 1, ns: 40e6 }, compute_infer: { count: 1, ns: 40e6 } },
    ]);
    const { success, queue } = stats!.inference_stats!;
    expect(success!.ns).toBe(queue!.ns + 6 * 40e6);
    // The oldest waits the whole delay, the others a little less.
    expect(queue!.ns).toBeGreaterThan(60e6);
    expect(queue!.ns).toBeLessThanOrEqual(180e6);
    expect(Math.abs(Date.now() - stats!.last_inference)).toBeLessThan(5000);
    expect(await counter(server, "nv_inference_count")).toBe(4);
    expect(await counter(server, "nv_inference_exec_count")).toBe(1);
    expect(await counter(server, "nv_inference_compute_input_duration_us")).toBe(120_000);
    expect(await counter(server, "nv_inference_compute_infer_duration_us")).toBe(120_000);
    expect(await counter(server, "nv_inference_queue_duration_us")).toBeCloseTo(queue!.ns / 1000, -1);
    expect(await counter(server, "nv_inference_request_duration_us")).toBeCloseTo(success!.ns / 1000, -1);
  });

  it("reports model time, whatever the dilation", async () => {
    const server = await startServer([BATCHED], { timeDilation: 3 });
    const from = performance.now();
    await inferSmall(server.client);
    // 60 ms of delay, 10 ms of copying, 25 ms on the GPU: three times as long on the wall.
    expect(performance.now() - from).toBeGreaterThan(3 * 95 - 1);
    const [stats] = await server.client.modelStatistics("sim");
    expect(stats!.inference_stats).toMatchObject({
      success: { count: 1, ns: 95e6 },
      queue: { count: 1, ns: 60e6 },
      compute_input: { count: 1, ns: 10e6 },
      compute_infer: { count: 1, ns: 25e6 },
    });
    expect(await counter(server, "local_triton_time_dilation")).toBe(3);
  });

  it("reports the GPU's busy share of the last two seconds of model time", async () => {
    // The GPU works 300 ms for each of three requests, one after the other.
    const server = await startServer([{ gpuMsPerBatch: 300, config: { max_batch_size: 1 } }]);
    const from = performance.now();
    await Promise.all([0, 1, 2].map((seed) => inferSmall(server.client, seed)));
    expect(await counter(server, "nv_gpu_utilization")).toBe(0);
    await sleep(2050 - (performance.now() - from));
    expect(await counter(server, "nv_gpu_utilization")).toBeCloseTo(0.45, 5);
    expect(await counter(server, "nv_gpu_power_usage")).toBeGreaterThan(27);
  });
});
