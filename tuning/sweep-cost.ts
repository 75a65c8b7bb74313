/** What a sweep takes and costs: an estimate before it starts, the cost so far, and the limit at which it ends. Pure arithmetic. */
import type { BudgetPreset } from "./search/budget";

/** Price of the machines under a sweep, and what may be spent on it. US dollars. */
export interface CostLimit {
  /** All machines together, an hour. */
  readonly usdPerHour: number;
  /** The sweep ends when it has cost this much. */
  readonly maxUsd: number;
  /** Month of the price table. */
  readonly asOf: string;
}

/**
 * Wall seconds of one variant with everything around its load: loading the model, warming up, judging. Seven variants take six minutes
 * with `quick` and three quarters of an hour with `thorough` (see search/budget.ts).
 */
const variantS: Readonly<Record<BudgetPreset, number>> = { quick: 52, thorough: 390 };
/** Opening the target, and serving at the end what was served before. */
const aroundS = 20;

/** Wall seconds that a sweep is expected to take. Engines that a server builds when it loads a model come on top. */
export function estimateS(effort: BudgetPreset, variants: number): number {
  return aroundS + variants * variantS[effort];
}

export function costUsd(usdPerHour: number, seconds: number): number {
  return (usdPerHour * seconds) / 3600;
}

/**
 * Wall seconds that the interrupted runs of a sweep took, each from its start to the end of its last trial.
 * @param startedAt of the first run and of each that resumed it, ISO 8601, in order
 * @param finishedAt of the trials of all runs, ISO 8601
 */
export function earlierS(startedAt: readonly string[], finishedAt: readonly string[]): number {
  const ends = finishedAt.map((text) => Date.parse(text));
  const seconds = startedAt.map((text, index) => {
    const from = Date.parse(text);
    const next = Date.parse(startedAt[index + 1] ?? "") || Infinity;
    return (Math.max(from, ...ends.filter((end) => end >= from && end < next)) - from) / 1000;
  });
  return seconds.reduce((sum, value) => sum + value, 0);
}

/** Adds up the cost from its creation on. The clock is handed in: wall time, because a machine that sleeps is paid for. */
export class CostMeter {
  private readonly fromMs: number;
  private earlierUsd = 0;

  constructor(
    private readonly limit: CostLimit,
    private readonly nowMs: () => number,
  ) {
    this.fromMs = nowMs();
  }

  /** The limit is the whole sweep's: what its interrupted runs took counts. */
  addEarlier(seconds: number): void {
    this.earlierUsd += costUsd(this.limit.usdPerHour, seconds);
  }

  /** US dollars so far. */
  get usd(): number {
    return this.earlierUsd + costUsd(this.limit.usdPerHour, (this.nowMs() - this.fromMs) / 1000);
  }

  /** As the result says it. */
  total(): { usd: number; usdPerHour: number; maxUsd: number; asOf: string } {
    return { usd: this.usd, ...this.limit };
  }

  /** Why the sweep has to end; null while it may go on. */
  reasonToStop(): string | null {
    const { maxUsd } = this.limit;
    if (this.usd < maxUsd) return null;
    return `the sweep has cost ${this.usd.toFixed(2)} US dollars, the limit of --max-cost is ${maxUsd}`;
  }
}
