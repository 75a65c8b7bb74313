/**
 * Exploration against an exhaustive grid on the H200 of docs/evidence/h200, in virtual time: how near to the grid's best, by the true
 * rates of both, for which share of its measured seconds.
 */
import type { GridName } from "../examples/gpu/grids";
import type { Variant } from "../model-repo/variant";
import { truthOf, type TruthOptions } from "../serving-model/truth";
import { explore } from "../tuning/explore/explore";
import type { SystemFacts, VariantOutcome } from "../tuning/outcome";
import { budgetFor } from "../tuning/search/budget";
import { SimulatedRunner } from "../tuning/search/simulated-runner";
import { searchSloRate } from "../tuning/search/strategy";
import type { Slo } from "../tuning/trial";
import { exampleVariants, recordedLaw, serverWith, type RecordedLaw } from "./h200-world";

/** As measure.sh gives them to the tune command. */
const facts: SystemFacts = { wireCeilingPerS: null, clientCeilingPerS: 20_000, scheduler: "payload" };
const overheadMs = 0.4;
const metricNoise = 0.02;
const longRuns: TruthOptions = { seeds: [1, 2, 3], warmupS: 5, measureS: 60, tolerance: 0.003 };

interface Measured {
  readonly outcome: VariantOutcome;
  readonly measuredS: number;
}

/** The recorded server under one objective. */
export class World {
  private readonly truths = new Map<string, number>();

  constructor(
    readonly slo: Slo,
    private readonly law: RecordedLaw = recordedLaw(),
    private readonly runs: TruthOptions = longRuns,
  ) {}

  /** One variant's search, as a quick sweep makes it. */
  measure(variant: Variant, seed: number): Measured {
    const runner = new SimulatedRunner({
      serverFor: (one, trialSeed) => serverWith(this.law, one, trialSeed),
      overheadMs,
      metricNoise,
      worldSeed: seed,
    });
    const search = searchSloRate({
      variant,
      slo: this.slo,
      mode: "poisson",
      seed,
      budget: budgetFor("quick", 1),
      facts,
    });
    let measuredS = 0;
    let step = search.next(null);
    while (!step.done) {
      measuredS += step.value.measureS;
      step = search.next(runner.runNow(step.value));
    }
    return { outcome: step.value, measuredS };
  }

  /** SLO rate by long runs. */
  truePerS(variant: Variant): number {
    const key = [variant.maxBatchSize, variant.instanceCount, variant.queueDelayUs].join();
    const known = this.truths.get(key);
    if (known !== undefined) return known;
    const boundMs = this.slo.boundMs - overheadMs;
    const found =
      truthOf((seed) => serverWith(this.law, variant, seed), { ...this.slo, boundMs }, this.runs) ?? 0;
    this.truths.set(key, found);
    return found;
  }
}

/** What is best by truth. */
export interface Best {
  readonly name: string;
  readonly truePerS: number;
}

export interface Found extends Best {
  /** Configurations that were measured, the start first. */
  readonly explored: readonly string[];
  readonly measuredS: number;
}

/** The grid that an exploration with this bound is compared with. */
const gridFor = ({ boundMs }: Slo): GridName => (boundMs < 50 ? "grid20" : "grid");

/** The grid's best by the true rates of all its configurations. */
export function bestOfGrid(world: World): Best {
  const truths = exampleVariants(gridFor(world.slo)).map((variant) => ({
    name: variant.name,
    truePerS: world.truePerS(variant),
  }));
  return truths.reduce((one, other) => (other.truePerS > one.truePerS ? other : one));
}

/** Measured seconds of the whole grid. */
export function gridSeconds(world: World, seed: number): number {
  return exampleVariants(gridFor(world.slo)).reduce(
    (sum, variant) => sum + world.measure(variant, seed).measuredS,
    0,
  );
}

/** Explores as measure.sh does. @param most configurations that may be measured beside the start */
export async function exploreIn(world: World, seed: number, most: number): Promise<Found> {
  const start = exampleVariants("tuned");
  const measured = start.map((variant) => ({ variant, ...world.measure(variant, seed) }));
  await explore({
    most,
    variants: start,
    outcomes: measured.map(({ outcome }) => outcome),
    slo: world.slo,
    mode: "poisson",
    facts,
    measure: ({ variant }) => {
      const one = { variant, ...world.measure(variant, seed) };
      measured.push(one);
      return Promise.resolve({ outcomes: [one.outcome], endedEarly: null });
    },
  });
  const rateOf = ({ outcome }: Measured): number => outcome.sloRate?.estimate ?? 0;
  const { variant } = measured.reduce((one, other) => (rateOf(other) > rateOf(one) ? other : one));
  return {
    name: variant.name,
    truePerS: world.truePerS(variant),
    explored: measured.map((one) => one.variant.name),
    measuredS: measured.reduce((sum, one) => sum + one.measuredS, 0),
  };
}
