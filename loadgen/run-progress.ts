/** What a running measurement shows once a second. */
import type { EarlyStop, LoadProgress, LoadSpec } from "./load-spec";
import { measuredSeconds } from "./merge-result";
import { SlidingWindow } from "./sliding-window";
import type { Tally, TallyMessage } from "./tally";

/** Span of the rate and p95 that progress shows, wall seconds. */
const PROGRESS_WINDOW_S = 3;

export class RunProgress {
  private live = new SlidingWindow(PROGRESS_WINDOW_S, performance.now() / 1000);
  private hasBegun = false;

  constructor(
    private readonly spec: LoadSpec,
    private readonly measured: Tally,
    private readonly show: ((progress: LoadProgress) => void) | undefined,
  ) {}

  /** @param startMs of the load's time 0 on the monotonic clock */
  began(startMs: number): void {
    this.hasBegun = true;
    this.live = new SlidingWindow(PROGRESS_WINDOW_S, startMs / 1000);
  }

  counted(measured: TallyMessage, warmup: TallyMessage): void {
    // The window lets reports go when it is read, and nobody reads it.
    if (this.show === undefined) return;
    const nowS = performance.now() / 1000;
    this.live.add(warmup.response, nowS);
    this.live.add(measured.response, nowS);
  }

  /** @param elapsedS model seconds since the load's start; 0 before it */
  tell(elapsedS: number, stop: EarlyStop | null): void {
    if (this.show === undefined) return;
    const { answeredPerS, response } = this.live.read(performance.now() / 1000);
    this.show({
      id: this.spec.id,
      phase: this.phaseAt(elapsedS, stop),
      elapsedS,
      ratePerS: answeredPerS * this.spec.timeDilation,
      p95Ms: response.percentileUs(0.95) / 1000,
      total: this.measured.slo.total(),
    });
  }

  private phaseAt(elapsedS: number, stop: EarlyStop | null): LoadProgress["phase"] {
    const { spec } = this;
    if (!this.hasBegun) return "connecting";
    if (elapsedS < spec.warmupS) return "warm-up";
    return elapsedS < spec.warmupS + measuredSeconds(spec, stop) ? "measuring" : "draining";
  }
}
