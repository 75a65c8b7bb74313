/**
 * `/metrics` of the controller, Prometheus text. It counts while measurements run, from the workers' reports once a second, so that
 * rates and alerts see a trial as it happens; whether a trial was valid is only known at its end, and counted then.
 */
import type { WorkerInfo } from "./controller";
import type { MeasurementObserver } from "./controller-run";
import { pairsOfSparse, type SparseHistogram } from "./histogram";
import type { LoadResult, LoadSpec } from "./load-spec";
import { MOST_LATENESS_SHARE } from "./merge-result";
import { loadMetrics as names } from "./metric-names";
import type { TallyMessage } from "./tally";

/** Upper bounds of response-time buckets as shares of the SLO bound: fine around it, and a bucket ends exactly there. */
const RESPONSE_SHARES = [
  0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20,
];
/** The same for lateness, as shares of the lateness that makes a trial invalid. */
const LATENESS_SHARES = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 4, 10, 20, 100];

/** Failures that have a series from the start, so that a rate sees the first one. */
const EXPECTED_ERRORS = [
  ...["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "NOT_FOUND", "INTERNAL", "INVALID_ARGUMENT"],
  ...["wrong-answer", "client-error"],
];

export interface ControllerMetricsOptions {
  /** Bound of the service level objective, milliseconds. A measurement with another bound still counts its outcomes exactly. */
  readonly sloBoundMs: number;
}

export class ControllerMetrics implements MeasurementObserver {
  private readonly requests = { ok: 0, late: 0, shed: 0, failed: 0 };
  private readonly errors = new Map<string, number>(EXPECTED_ERRORS.map((kind) => [kind, 0]));
  private readonly measurements = { valid: 0, invalid: 0, aborted: 0 };
  private readonly response: Buckets;
  private readonly lateness: Buckets;
  private readonly service = { count: 0, sumUs: 0 };
  private sentBytes = 0;
  private running: LoadSpec | undefined;

  constructor({ sloBoundMs }: ControllerMetricsOptions) {
    const boundUs = sloBoundMs * 1000;
    this.response = new Buckets(RESPONSE_SHARES.map((share) => share * boundUs));
    this.lateness = new Buckets(LATENESS_SHARES.map((share) => share * MOST_LATENESS_SHARE * boundUs));
  }

  started(spec: LoadSpec): void {
    this.running = spec;
  }

  counted({ sloBoundMs }: LoadSpec, measured: TallyMessage, sentBytes: number): void {
    let answeredInTime = 0;
    for (const { ok, late, shed, failed } of measured.intervals) {
      this.requests.ok += ok;
      this.requests.late += late - shed;
      this.requests.shed += shed;
      this.requests.failed += failed;
      answeredInTime += ok;
    }
    for (const { kind, count } of measured.errors)
      this.errors.set(kind, (this.errors.get(kind) ?? 0) + count);
    this.response.add(measured.response, { boundUs: sloBoundMs * 1000, count: answeredInTime });
    this.lateness.add(measured.lateness);
    this.service.count += measured.service.counts.reduce((sum, count) => sum + count, 0);
    this.service.sumUs += measured.service.sumUs;
    this.sentBytes += sentBytes;
  }

  ended(result: LoadResult | undefined): void {
    this.running = undefined;
    this.measurements[result === undefined ? "aborted" : result.valid ? "valid" : "invalid"]++;
  }

  exposition(workers: readonly WorkerInfo[]): string {
    const inFlight = workers.reduce((sum, { heartbeat }) => sum + (heartbeat?.inFlight ?? 0), 0);
    const by = (label: string, values: Iterable<readonly [string, number]>) =>
      [...values].map(([key, value]): Sample => ({ labels: { [label]: key }, value }));
    const { running } = this;
    return [
      ...family(
        names.requests,
        "counter",
        "Measured requests by outcome",
        by("outcome", Object.entries(this.requests)),
      ),
      ...family(names.errors, "counter", "Failed measured requests by kind", by("kind", this.errors)),
      ...family(
        names.responseSeconds,
        "histogram",
        "Response times of answered requests from the planned send",
        this.response.samples(),
      ),
      ...family(names.serviceSeconds, "summary", "Times of answered requests from the real send", [
        { suffix: "_sum", value: this.service.sumUs / 1e6 },
        { suffix: "_count", value: this.service.count },
      ]),
      ...family(names.latenessSeconds, "histogram", "Real minus planned send", this.lateness.samples()),
      ...family(names.sentBytes, "counter", "Message bytes sent, warm-up included", [
        { value: this.sentBytes },
      ]),
      ...family(names.inFlight, "gauge", "Requests sent and not yet answered", [{ value: inFlight }]),
      ...family(names.workers, "gauge", "Registered workers", [{ value: workers.length }]),
      ...family(
        names.cpuShare,
        "gauge",
        "CPU seconds per second of a worker, without busy waiting",
        by(
          "worker",
          workers.map(({ name, heartbeat }) => [name, heartbeat?.cpuShare ?? 0] as const),
        ),
      ),
      ...family(
        names.busyWaitShare,
        "gauge",
        "CPU seconds per second that a worker waits awake for planned sends",
        by(
          "worker",
          workers.map(({ name, heartbeat }) => [name, heartbeat?.busyWaitShare ?? 0] as const),
        ),
      ),
      ...family(
        names.measurements,
        "counter",
        "Ended measurements",
        by("result", Object.entries(this.measurements)),
      ),
      ...family(
        names.measurementRunning,
        "gauge",
        "1 while a measurement runs",
        running === undefined ? [] : [{ labels: labelsOf(running), value: 1 }],
      ),
      "",
    ].join("\n");
  }
}

function labelsOf({ id, modelName, subject }: LoadSpec): Readonly<Record<string, string>> {
  return { variant: subject?.variant ?? modelName, trial: subject?.trial ?? id, id };
}

/** Counts below upper bounds, microseconds. */
class Buckets {
  /** The last one has no upper bound. */
  private readonly counts: number[];
  private readonly boundsUs: readonly number[];
  private sumUs = 0;

  constructor(boundsUs: readonly number[]) {
    // Whole microseconds, as the recorded times are; also undoes 0.7 * 100 = 70.00000000000001.
    this.boundsUs = boundsUs.map((bound) => Math.round(bound));
    this.counts = Array.from({ length: boundsUs.length + 1 }, () => 0);
  }

  /**
   * Adds a histogram, whose buckets are 0.1 % wide. Where the exact number of values within one bound is known, it is put right there.
   */
  add(histogram: SparseHistogram, exact?: { readonly boundUs: number; readonly count: number }): void {
    let within = 0;
    for (const [lowerUs, count] of pairsOfSparse(histogram)) {
      this.counts[this.indexOf(lowerUs)]! += count;
      if (exact !== undefined && lowerUs <= exact.boundUs) within += count;
    }
    this.sumUs += histogram.sumUs;
    const index = this.boundsUs.indexOf(exact?.boundUs ?? NaN);
    if (exact === undefined || index < 0) return;
    this.counts[index]! -= within - exact.count;
    this.counts[index + 1]! += within - exact.count;
  }

  samples(): Sample[] {
    let total = 0;
    const cumulative = this.counts.map((count) => (total += count));
    return [
      ...cumulative.map((value, index): Sample => {
        const boundUs = this.boundsUs[index];
        return {
          suffix: "_bucket",
          labels: { le: boundUs === undefined ? "+Inf" : String(boundUs / 1e6) },
          value,
        };
      }),
      { suffix: "_sum", value: this.sumUs / 1e6 },
      { suffix: "_count", value: total },
    ];
  }

  private indexOf(valueUs: number): number {
    const index = this.boundsUs.findIndex((bound) => valueUs <= bound);
    return index < 0 ? this.boundsUs.length : index;
  }
}

interface Sample {
  readonly suffix?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

function family(
  name: string,
  type: "counter" | "gauge" | "histogram" | "summary",
  help: string,
  samples: readonly Sample[],
): string[] {
  const lines = samples.map(({ suffix = "", labels = {}, value }) => {
    const inner = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`);
    return `${name}${suffix}${inner.length > 0 ? `{${inner.join(",")}}` : ""} ${value}`;
  });
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines];
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
