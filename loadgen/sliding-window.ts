/** What happened in the last seconds, over all workers: the last reports, merged on demand. Any window length works. */
import { Histogram, type SparseHistogram } from "./histogram";

interface Report {
  readonly atMs: number;
  readonly response: SparseHistogram;
}

export class SlidingWindow {
  private readonly startMs: number;
  private reports: Report[] = [];

  /**
   * @param lengthMs wall time
   * @param nowMs wall time of the start, on the clock that `add` and `read` use
   */
  constructor(
    private readonly lengthMs: number,
    nowMs: number,
  ) {
    this.startMs = nowMs;
  }

  /** Adds the response times of one report. */
  add(response: SparseHistogram, nowMs: number): void {
    this.reports.push({ atMs: nowMs, response });
  }

  /** Answered requests per second of wall time, and their response-time histogram, over the window that ends now. */
  read(nowMs: number): { readonly answeredPerS: number; readonly response: Histogram } {
    this.reports = this.reports.filter(({ atMs }) => atMs > nowMs - this.lengthMs);
    const response = new Histogram();
    for (const report of this.reports) response.mergeSparse(report.response);
    const spanMs = Math.min(this.lengthMs, nowMs - this.startMs);
    return { answeredPerS: spanMs > 0 ? (response.count * 1000) / spanMs : 0, response };
  }
}
