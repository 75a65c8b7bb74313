/** How long a sweep still takes, from the variants measured so far. */

/** Follows a sweep; the clock is handed in. */
export class SweepClock {
  private startedS = 0;
  private index = 0;
  private of = 0;
  private measuredAnything = false;
  private readonly spentS: number[] = [];

  constructor(private readonly nowS: () => number) {}

  variantStarted(index: number, of: number): void {
    this.index = index;
    this.of = of;
    this.startedS = this.nowS();
    this.measuredAnything = false;
  }

  /** A trial was run, not taken from the point log. */
  trialMeasured(): void {
    this.measuredAnything = true;
  }

  variantFinished(): void {
    // A variant whose trials all came from the log took no time and would spoil the mean.
    if (this.measuredAnything) this.spentS.push(this.nowS() - this.startedS);
  }

  /** Seconds left, as if the other variants took as long as those measured so far; null before the first is done. */
  leftS(): number | null {
    if (this.spentS.length === 0) return null;
    const meanS = this.spentS.reduce((sum, each) => sum + each, 0) / this.spentS.length;
    const thisOneS = Math.max(0, meanS - (this.nowS() - this.startedS));
    return thisOneS + meanS * (this.of - this.index - 1);
  }
}
