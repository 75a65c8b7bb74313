/** Searches in virtual time on the simulated T4, for tests. */
import type { Variant } from "../../../model-repo/variant";
import { serviceLawFor } from "../../../serving-model/t4";
import type { VariantOutcome } from "../../../tuning/outcome";
import { budgetFor } from "../../../tuning/search/budget";
import { SimulatedRunner, type SimulatedRunnerOptions } from "../../../tuning/search/simulated-runner";
import { searchSloRate, type SearchOptions } from "../../../tuning/search/strategy";
import type { TrialResult, TrialSpec } from "../../../tuning/trial";

export const slo = { quantile: 0.95, boundMs: 100 };
export const serverOf = (variant: Variant) => ({
  ...variant,
  dynamicBatching: true,
  law: serviceLawFor(variant),
});

export interface Search {
  readonly outcome: VariantOutcome;
  readonly specs: TrialSpec[];
  readonly loadedS: number;
}

export function search(
  variant: Variant,
  options: Partial<SearchOptions> = {},
  world: Partial<SimulatedRunnerOptions> = {},
  change: (spec: TrialSpec, result: TrialResult) => TrialResult | null = (_spec, result) => result,
): Search {
  const runner = new SimulatedRunner({ serverFor: serverOf, overheadMs: 0.5, ...world });
  const specs: TrialSpec[] = [];
  const strategy = searchSloRate({
    variant,
    slo,
    mode: "poisson",
    seed: 5,
    budget: budgetFor("quick", 4),
    facts: { wireCeilingPerS: null, clientCeilingPerS: null },
    lawOf: serviceLawFor,
    ...options,
  });
  let step = strategy.next(null);
  while (!step.done) {
    specs.push(step.value);
    step = strategy.next(change(step.value, runner.runNow(step.value)));
  }
  return { outcome: step.value, specs, loadedS: runner.loadedS };
}

/** What limits the documents' variants on the simulated T4. */
export const causes: Readonly<Record<string, string>> = {
  original: "gpu-bound",
  tftrt_fp32: "gpu-bound",
  tftrt_fp16: "host-bound",
  tftrt_int8: "host-bound",
  tftrt_fp16_bs8_count4: "gpu-bound",
  tftrt_int8_bs8_count4: "wire-bound",
  tftrt_int8_bs16_count4: "wire-bound",
};
