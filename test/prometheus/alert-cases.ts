/** For every alert: input that makes it fire, and when. A reading every 15 s unless the case says otherwise; `4x40` in promtool's words is 4, then 40 more of it. */

export interface AlertCase {
  /** Time between two readings. */
  readonly every?: "1m";
  /** Values by series. */
  readonly series: Readonly<Record<string, string>>;
  /** Labels of the alert besides its severity. */
  readonly labels: Readonly<Record<string, string>>;
  /** The condition holds, or is about to, but not for long enough. */
  readonly quietAt: string;
  readonly firesAt: string;
  readonly overAt: string;
}

/** Rules of five-second readings have rate windows of 20 s, which hold two of these readings. */
const pod = 'namespace="triton",pod="triton-1",job="triton"';
const model = `model="m",version="1",${pod}`;
const calmLoad = { 'loadgen_requests_total{outcome="ok"}': "0+1500x600" };

/** Requests of an hour that miss the objective, after six hours of good ones, before good ones again. */
const missed = (misses: string) => ({
  'loadgen_requests_total{outcome="ok"}': "0+6000x360 2160000+0x60 2160000+6000x375",
  'loadgen_requests_total{outcome="late"}': misses,
});
const anHourOfMisses = "0x360 0+6000x60 360000x375";

export const alertCases: Readonly<Record<string, AlertCase>> = {
  TritonServersMissing: {
    series: { 'up{job="triton",pod="a"}': "1x100", 'up{job="triton",pod="b"}': "1x10 0x40 1x50" },
    labels: {},
    quietAt: "7m",
    firesAt: "9m",
    overAt: "14m",
  },
  TritonNotReady: {
    series: { 'up{job="triton-ready",pod="a"}': "1x10 0x40 1x50", 'up{job="triton-ready",pod="b"}': "1x100" },
    labels: { job: "triton-ready", pod: "a" },
    quietAt: "7m",
    firesAt: "9m",
    overAt: "14m",
  },
  TritonFailures: {
    series: {
      [`nv_inference_request_success{${model}}`]: "0+1000x100",
      [`nv_inference_request_failure{reason="REJECTED",${model}}`]: "0x10 0+20x40 800x50",
    },
    labels: { model: "m" },
    quietAt: "7m",
    firesAt: "9m",
    overAt: "15m",
  },
  TritonQueueGrowing: {
    series: { [`nv_inference_pending_request_count{${model}}`]: "0x10 0+30x40 0x50" },
    labels: { model: "m" },
    quietAt: "3m",
    firesAt: "10m",
    overAt: "20m",
  },
  TritonGpuSaturated: {
    series: { [`nv_gpu_utilization{gpu_uuid="g",${pod}}`]: "0.5x10 0.99x100 0.5x50" },
    labels: { pod: "triton-1" },
    quietAt: "17m",
    firesAt: "19m",
    overAt: "30m",
  },
  TritonHostBound: {
    series: {
      [`nv_gpu_utilization{gpu_uuid="g",${pod}}`]: "0.4x160",
      [`nv_inference_request_success{${model}}`]: "0+100x160",
      // Each request waits 10 ms, then 80 ms, then 10 ms again.
      [`nv_inference_queue_duration_us{${model}}`]: "0+1000000x10 10000000+8000000x100 810000000+1000000x50",
    },
    labels: { pod: "triton-1" },
    quietAt: "17m",
    firesAt: "20m",
    overAt: "32m",
  },
  SloBurnFast: {
    every: "1m",
    series: missed(anHourOfMisses),
    labels: {},
    // Half an hour of misses is half of the hour's requests: not yet enough.
    quietAt: "6h30m",
    firesAt: "6h45m",
    overAt: "7h10m",
  },
  SloBurnSlow: {
    every: "1m",
    // Two of three requests for six hours: a share of the last six hours that grows to 30 % in less than three.
    series: {
      'loadgen_requests_total{outcome="ok"}': "0+6000x360 2160000+2000x360 2880000+6000x360",
      'loadgen_requests_total{outcome="failed"}': "0x360 0+4000x360 1440000x360",
    },
    labels: {},
    quietAt: "7h30m",
    firesAt: "10h",
    overAt: "13h",
  },
  LoadWorkersMissing: {
    series: { loadgen_workers: "2x10 1x40 2x50" },
    labels: {},
    quietAt: "7m",
    firesAt: "9m",
    overAt: "14m",
  },
  LoadGeneratorLate: {
    series: {
      ...calmLoad,
      'loadgen_lateness_seconds_bucket{le="0.005"}': "0+100x20 2000+50x20 3000+100x60",
      'loadgen_lateness_seconds_bucket{le="0.01"}': "0+100x100",
      'loadgen_lateness_seconds_bucket{le="+Inf"}': "0+100x100",
    },
    labels: {},
    quietAt: "5m30s",
    firesAt: "8m",
    overAt: "12m",
  },
  LoadTrialsInvalid: {
    series: { 'loadgen_measurements_total{result="invalid"}': "0x20 1x20 2x20 3x200" },
    labels: {},
    quietAt: "9m",
    firesAt: "16m",
    overAt: "50m",
  },
  ScrapeMissing: {
    series: { 'up{job="load-generator",pod="c"}': "1x10 0x40 1x50" },
    labels: { job: "load-generator", pod: "c" },
    quietAt: "7m",
    firesAt: "9m",
    overAt: "14m",
  },
};
