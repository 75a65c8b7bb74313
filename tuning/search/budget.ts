/** What a search may spend on one variant. */
import { fineEffort, type KneeEffort, roughEffort } from "./model-knee";

export interface SearchBudget {
  /** Load altogether, warm-ups included, model seconds. The search ends before a trial that would exceed it. */
  readonly totalS: number;
  /** Factor on the probe's windows. */
  readonly probeScale: number;
  /** Warm-up and window of the trials near the knee, model seconds. */
  readonly warmupS: number;
  readonly measureS: number;
  /** Trials near the knee, at least (if the total allows) and at most. */
  readonly leastTrials: number;
  readonly mostTrials: number;
  /** The search ends early when the interval's half width is this small, relative. */
  readonly targetHalfWidth: number;
  readonly kneeEffort: KneeEffort;
}

export type BudgetPreset = "quick" | "thorough";

/** Wall seconds of load a variant may take; the rest of the six (or 45) minutes goes to starting, loading and judging. */
const wallS: Readonly<Record<BudgetPreset, number>> = { quick: 32, thorough: 270 };

/**
 * The budget of a preset for a variant that runs in dilated time. `quick`: a sweep of seven variants in six minutes on a slow
 * machine. `thorough`: at most six minutes a variant.
 * @param timeDilation wall seconds per model second, >= 1
 */
export function budgetFor(preset: BudgetPreset, timeDilation: number): SearchBudget {
  const totalS = wallS[preset] / timeDilation;
  if (preset === "quick") {
    // The probe takes about 3 s; two trials share the rest.
    const trialS = Math.min(8, Math.max(2, (totalS - 5) / 2 - 1));
    return {
      totalS,
      probeScale: 0.6,
      warmupS: trialS >= 5 ? 1.5 : 0.7,
      measureS: Math.round(trialS * 10) / 10,
      leastTrials: 2,
      mostTrials: 4,
      targetHalfWidth: 0.02,
      kneeEffort: roughEffort,
    };
  }
  const measureS = totalS > 150 ? 20 : 12;
  return {
    totalS,
    probeScale: 1,
    warmupS: 3,
    measureS,
    leastTrials: 4,
    mostTrials: 9,
    targetHalfWidth: 0.01,
    kneeEffort: fineEffort,
  };
}
