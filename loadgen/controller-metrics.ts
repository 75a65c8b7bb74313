/** `/metrics` of the controller, Prometheus text: what finished measurements add up to, and the workers' newest heartbeats. */
import type { WorkerInfo } from "./controller";
import type { LoadResult } from "./load-spec";

/** Upper bounds of the response-time buckets, seconds; the default SLO bound of 100 ms is one of them. */
const BUCKETS_S = [0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5];

export class ControllerMetrics {
  private readonly buckets = BUCKETS_S.map(() => 0);
  private count = 0;
  private sumS = 0;
  private readonly requests = { ok: 0, late: 0, failed: 0 };
  private invalid = 0;
  private latenessP99S = 0;

  /** Takes in a finished measurement; an invalid one only counts as that. */
  add(result: LoadResult): void {
    if (!result.valid) {
      this.invalid++;
      return;
    }
    for (const [lowerUs, count] of result.responseHistogram) {
      const seconds = lowerUs / 1e6;
      this.count += count;
      this.sumS += seconds * count;
      for (const [index, bound] of BUCKETS_S.entries()) if (seconds <= bound) this.buckets[index]! += count;
    }
    this.requests.ok += result.total.ok;
    this.requests.late += result.total.late;
    this.requests.failed += result.total.failed;
    this.latenessP99S = result.health.latenessP99Ms / 1000;
  }

  exposition(workers: readonly WorkerInfo[]): string {
    const inFlight = workers.reduce((sum, { heartbeat }) => sum + (heartbeat?.inFlight ?? 0), 0);
    return [
      "# HELP loadgen_response_seconds Response times from the planned send, over finished measurements",
      "# TYPE loadgen_response_seconds histogram",
      ...BUCKETS_S.map(
        (bound, index) => `loadgen_response_seconds_bucket{le="${bound}"} ${this.buckets[index]}`,
      ),
      `loadgen_response_seconds_bucket{le="+Inf"} ${this.count}`,
      `loadgen_response_seconds_sum ${this.sumS}`,
      `loadgen_response_seconds_count ${this.count}`,
      "# HELP loadgen_requests_total Requests of finished measurements by outcome",
      "# TYPE loadgen_requests_total counter",
      ...Object.entries(this.requests).map(
        ([outcome, n]) => `loadgen_requests_total{outcome="${outcome}"} ${n}`,
      ),
      "# HELP loadgen_invalid_measurements_total Measurements whose numbers must not be used",
      "# TYPE loadgen_invalid_measurements_total counter",
      `loadgen_invalid_measurements_total ${this.invalid}`,
      "# HELP loadgen_lateness_seconds Real minus planned send, 99th percentile of the newest valid measurement",
      "# TYPE loadgen_lateness_seconds gauge",
      `loadgen_lateness_seconds{quantile="0.99"} ${this.latenessP99S}`,
      "# HELP loadgen_in_flight Requests sent and not yet answered, by the workers' newest heartbeats",
      "# TYPE loadgen_in_flight gauge",
      `loadgen_in_flight ${inFlight}`,
      "# HELP loadgen_workers Registered workers",
      "# TYPE loadgen_workers gauge",
      `loadgen_workers ${workers.length}`,
      "",
    ].join("\n");
  }
}
