import { describe, expect, it } from "vitest";
import { parsePrometheusText, sumOf } from "../../tuning/prometheus-text";
import { pollOf, windowOf } from "../../tuning/server-window";

describe("parsePrometheusText", () => {
  it("reads names, labels with escapes, and special values; passes comments over", () => {
    const samples = parsePrometheusText(
      '# HELP a b\na 1\nb{x="1",y="q\\"\\\\\\n"} +Inf\nc{} NaN 1700000000000\n',
    );
    expect(samples[0]).toEqual({ name: "a", labels: {}, value: 1 });
    expect(samples[1]).toEqual({ name: "b", labels: { x: "1", y: 'q"\\\n' }, value: Infinity });
    expect(samples[2]!.value).toBeNaN();
  });

  it.each(["a", "a{x=1} 2", "a one", '{x="1"} 2'])(
    "names the line that is not Prometheus text: %s",
    (line) => {
      expect(() => parsePrometheusText(`ok 1\n${line}`)).toThrow(/metrics line 2/);
    },
  );

  it("sums over label sets and tells absence from zero", () => {
    const samples = parsePrometheusText(
      'f{model="m",reason="A"} 1\nf{model="m",reason="B"} 2\nf{model="n"} 9',
    );
    expect(sumOf(samples, "f", { model: "m" })).toBe(3);
    expect(sumOf(samples, "g")).toBeNull();
  });
});

/** A Triton exposition in which every counter of model m grows linearly. */
function exposition(requests: number, gpuBusy: number | null): string {
  return [
    `nv_inference_request_success{model="m",version="1"} ${requests}`,
    `nv_inference_request_success{model="other",version="1"} 999999`,
    `nv_inference_count{model="m",version="1"} ${requests}`,
    `nv_inference_exec_count{model="m",version="1"} ${requests / 8}`,
    `nv_inference_queue_duration_us{model="m",version="1"} ${requests * 12_000}`,
    `nv_inference_compute_input_duration_us{model="m",version="1"} ${requests * 1000}`,
    `nv_inference_compute_infer_duration_us{model="m",version="1"} ${requests * 20_000}`,
    `nv_inference_compute_output_duration_us{model="m",version="1"} ${requests * 100}`,
    ...(gpuBusy === null ? [] : [`nv_gpu_utilization{gpu_uuid="GPU-0"} ${gpuBusy}`]),
  ].join("\n");
}

const poll = (unixMs: number, requests: number, gpuBusy: number | null) =>
  pollOf(unixMs, "m", [parsePrometheusText(exposition(requests, gpuBusy))]);

describe("windowOf", () => {
  it("interpolates counters at both ends, so a window between polls is exact for a steady server", () => {
    const polls = [0, 1000, 2000, 3000].map((unixMs) => poll(unixMs, unixMs, 0.5));
    const window = windowOf(polls, 250, 2750, 0, null);
    expect(window.meanBatch).toBeCloseTo(8, 10);
    expect(window.queueMs).toBeCloseTo(12, 10);
    expect(window.computeInferMs).toBeCloseTo(20, 10);
    expect(window.computeInputMs).toBeCloseTo(1, 10);
    expect(window.computeOutputMs).toBeCloseTo(0.1, 10);
    expect(window.gpuBusy).toBeCloseTo(0.5, 10);
  });

  it("leaves out GPU gauges that still look back into the warm-up", () => {
    const polls = [poll(0, 0, 0.1), poll(1000, 10, 0.1), poll(2000, 20, 0.9), poll(3000, 30, 0.9)];
    expect(windowOf(polls, 500, 3000, 1000, null).gpuBusy).toBeCloseTo(0.9, 10);
  });

  it("says null, not zero, for what the server does not report", () => {
    const polls = [poll(0, 0, null), poll(1000, 100, null)];
    expect(windowOf(polls, 0, 1000, 0, null).gpuBusy).toBeNull();
    expect(windowOf([], 0, 1000, 0, null).meanBatch).toBeNull();
  });

  it("reports no figure for a window outside the polled range", () => {
    expect(windowOf([poll(1000, 10, 0.5), poll(2000, 20, 0.5)], 0, 2000, 0, null).meanBatch).toBeNull();
  });

  it("adds replicas up and averages their GPUs", () => {
    const two = (unixMs: number, requests: number) =>
      pollOf(
        unixMs,
        "m",
        [exposition(requests, 0.2), exposition(requests * 3, 0.6)].map(parsePrometheusText),
      );
    const window = windowOf([two(0, 0), two(1000, 80)], 0, 1000, 0, null);
    expect(window.meanBatch).toBeCloseTo(8, 10);
    expect(window.gpuBusy).toBeCloseTo(0.4, 10);
  });
});
