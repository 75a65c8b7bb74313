import { describe, expect, it } from "vitest";
import { parsePrometheusText, sumOf } from "../../tuning/prometheus-text";
import { MetricsPoller, windowOf } from "../../tuning/server-window";
import families from "../local-triton/fixtures/metrics-families.json";
import { inferSmall, sleep } from "../local-triton/support";
import { startLocalSubject, startTritonSubject, subjects } from "./harness/subjects";

/** HELP and TYPE lines, those of the GPU and of local-triton itself left out. */
function familyLines(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("#") && !/ (nv_gpu_|nv_energy|local_triton_)/.test(line));
}

describe("/metrics", () => {
  it("has the same families, kinds, help texts and labels on both, and as recorded", async () => {
    const servers = await Promise.all([startTritonSubject([{}]), startLocalSubject([{}])]);
    const [real, ours] = await Promise.all(
      servers.map(async (server) => {
        await inferSmall(server.client);
        return server.metrics();
      }),
    );
    expect(familyLines(real!)).toEqual(families.lines);
    expect(familyLines(ours!)).toEqual(families.lines);
    const labels = (text: string): string[] =>
      parsePrometheusText(text)
        .filter(({ name }) => !/^(nv_gpu_|nv_energy|local_triton_)/.test(name))
        .map(({ name, labels }) => `${name}{${Object.keys(labels).sort().join(",")}}`)
        .sort();
    expect(labels(ours!)).toEqual(labels(real!));
  });
});

/** Two instances on one device: 5 ms of copying an image, then 20 ms and 2 ms an image on the device. */
const MODEL = {
  hostMsPerImage: 5,
  gpuMsPerBatch: 20,
  gpuMsPerImage: 2,
  config: {
    max_batch_size: 8,
    dynamic_batching: { max_queue_delay_microseconds: 40_000 },
    instance_group: [{ count: 2, kind: "KIND_GPU" as const }],
  },
};

describe.each(subjects)("counters and statistics of %s", (_name, start) => {
  it("charge every request of a batch the whole batch's time", async () => {
    const { client, metrics } = await start([MODEL]);
    await Promise.all([inferSmall(client, 1), inferSmall(client, 2, 2), inferSmall(client, 3)]);
    const [stats] = await client.modelStatistics("sim");
    expect(stats).toMatchObject({ inference_count: 4, execution_count: 1 });
    const inference = stats!.inference_stats!;
    expect(inference).toMatchObject({ success: { count: 3 }, queue: { count: 3 }, fail: { count: 0 } });
    // Four images: 20 ms of copying and 28 ms on the device, for each of three requests.
    expect(inference.compute_input).toEqual({ count: 3, ns: 3 * 20e6 });
    expect(inference.compute_infer).toEqual({ count: 3, ns: 3 * 28e6 });
    expect(stats!.batch_stats).toMatchObject([
      {
        batch_size: 4,
        compute_input: { count: 1, ns: 20e6 },
        compute_infer: { count: 1, ns: 28e6 },
      },
    ]);
    expect(inference.queue!.ns).toBeGreaterThan(40e6);
    const samples = parsePrometheusText(await metrics());
    const counter = (name: string) => sumOf(samples, `nv_inference_${name}`, { model: "sim" });
    expect(counter("request_success")).toBe(3);
    expect(counter("count")).toBe(4);
    expect(counter("exec_count")).toBe(1);
    expect(counter("compute_input_duration_us")).toBe(60_000);
    expect(counter("compute_infer_duration_us")).toBe(84_000);
    expect(counter("queue_duration_us")).toBeCloseTo(inference.queue!.ns / 1000, -1);
  });

  it("give the window of a trial its batch size and times", async () => {
    const { client, metrics } = await start([MODEL]);
    const poller = new MetricsPoller([metrics], "sim", 100);
    await poller.start();
    const from = Date.now();
    for (let round = 0; round < 4; round++) {
      await Promise.all([0, 1, 2].map((seed) => inferSmall(client, seed)));
    }
    await sleep(50);
    const to = Date.now();
    const window = windowOf(await poller.stop(), from, to, 0, null);
    expect(window.meanBatch).toBeCloseTo(3, 5);
    expect(window.computeInputMs).toBeCloseTo(15, 3);
    expect(window.computeInferMs).toBeCloseTo(26, 3);
    // All three wait for the delay of the first.
    expect(window.queueMs).toBeGreaterThan(35);
    expect(window.queueMs).toBeLessThan(120);
  });
});

describe("a server without a GPU", () => {
  it("has no GPU metrics, and the window says so instead of zero", async () => {
    const { client, metrics } = await startTritonSubject([{}]);
    const poller = new MetricsPoller([metrics], "sim", 100);
    await poller.start();
    const from = Date.now();
    await inferSmall(client);
    await sleep(20);
    const to = Date.now();
    await sleep(20);
    const window = windowOf(await poller.stop(), from, to, 0, null);
    expect(window.meanBatch).not.toBeNull();
    expect(window).toMatchObject({ gpuBusy: null, gpuMemoryUsedBytes: null, gpuPowerW: null });
  });
});
