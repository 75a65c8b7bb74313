/**
 * What happened in the last seconds, over all workers. Any length works: a report is merged once when it comes and taken out once when it is
 * too old, so what a look costs does not depend on the window and the number of workers.
 */
import { Histogram, type SparseHistogram } from "./histogram";

/** Reports of so many parts of the window are kept together: it is longer than said by at most one of them. */
const SLICES = 100;
/** Longest slice, seconds: the pause between two reports of a worker. */
const MAX_SLICE_S = 1;

interface Slice {
  /** Time of its last report, seconds. */
  readonly atS: number;
  readonly response: SparseHistogram;
  readonly lost: number;
}

/** The window as it is now. */
export interface WindowContent {
  /** Answered requests per second since the window's start, at most its length ago. */
  readonly answeredPerS: number;
  /** Response times of answered requests; only until the window is touched again. */
  readonly response: Pick<Histogram, "count" | "percentileUs">;
  /** Requests without a time: failed or shed. */
  readonly lost: number;
}

export class SlidingWindow {
  private readonly sliceS: number;
  /** Closed slices, oldest first; those before `first` are gone. */
  private slices: Slice[] = [];
  private first = 0;
  /** All closed slices. */
  private readonly response = new Histogram();
  private lost = 0;
  private readonly open = { response: new Histogram(), lost: 0, atS: NaN };

  /**
   * @param lengthS in the seconds of whatever clock `add` and `read` use
   * @param startS time of the start on that clock
   */
  constructor(
    private readonly lengthS: number,
    private readonly startS: number,
  ) {
    this.sliceS = Math.min(MAX_SLICE_S, lengthS / SLICES);
  }

  /** Adds one report; times never go back. @param lost requests that have no time: failed or shed */
  add(response: SparseHistogram, atS: number, lost = 0): void {
    if (response.counts.length === 0 && lost === 0) return;
    const { open } = this;
    if (this.sliceAt(atS) !== this.sliceAt(open.atS)) this.closeSlice();
    open.response.mergeSparse(response);
    open.lost += lost;
    open.atS = atS;
  }

  /** The window that ends now. */
  read(nowS: number): WindowContent {
    this.closeSlice();
    for (let slice = this.slices[this.first]; slice !== undefined; slice = this.slices[++this.first]) {
      if (slice.atS > nowS - this.lengthS) break;
      this.response.subtractSparse(slice.response);
      this.lost -= slice.lost;
    }
    // Not at every step: to move what is left costs as much as there is.
    if (2 * this.first > this.slices.length) {
      this.slices = this.slices.slice(this.first);
      this.first = 0;
    }
    const { response, lost } = this;
    const spanS = Math.min(this.lengthS, nowS - this.startS);
    return { answeredPerS: spanS > 0 ? response.count / spanS : 0, response, lost };
  }

  private sliceAt(atS: number): number {
    return Math.floor(atS / this.sliceS);
  }

  private closeSlice(): void {
    const { open } = this;
    if (open.response.count === 0 && open.lost === 0) return;
    const slice = { atS: open.atS, response: open.response.toSparse(), lost: open.lost };
    this.slices.push(slice);
    this.response.mergeSparse(slice.response);
    this.lost += slice.lost;
    open.response.clear();
    open.lost = 0;
  }
}
