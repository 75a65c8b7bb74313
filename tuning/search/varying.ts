/** The estimate for a server that varies: by its misses in the long run, with the law of variation that its response times look like. */
import { steady, type VariationLaw } from "../identify/variation";
import type { Slo } from "../trial";
import { defaultErrorModel, type SpeedEstimate } from "./estimate";
import type { KneeTrial } from "./knee-trials";
import type { LoadMode } from "./load-axis";
import { kneeOf, type ModelledSystem, roughEffort, spedUp } from "./model-knee";
import { matchMisses } from "./pooled";
import { type FittedVariation, fitVariation, pooledTrials, varied } from "./variation-fit";

/** Trials that a law of variation is fitted to while more of them come, which then confirm it; and fewest that it can be told from. */
const lawTrials = 7;
const leastLawTrials = 5;
/** Laws that fit nearly as well as the best one are as likely; their knees show how much the choice matters. */
const goodMisfit = 1.6;
/** Error (ln of the speed) of the chosen law, at least, and of the assumption that trials differ in their speed alone. */
const lawErrorAlone = 0.005;
const steadyLawError = 0.003;
/**
 * A server whose speed wanders does so within a trial, too: trials show only what is left of it in their means. For a wander that is
 * forgotten within a quarter of a trial (Ornstein-Uhlenbeck, T = 4 tau) the standard deviation of means is
 * sqrt(2 (tau/T) (1 - (tau/T) (1 - exp(-T/tau)))) = 0.61 of the whole; a faster one hardly shows in trials and hardly matters.
 */
const shownByTrials = 0.61;
/**
 * The knee lies lower by about 1.6 standard deviations of the trials' speed, and that of nine trials is known to
 * 1 / sqrt(2 (n - 1)) = 0.25 of itself (Ahn and Fessler 2003).
 */
const spellError = 0.4;

/** The law of variation of one server. It is looked for once: that takes much time, and few trials do not tell laws apart. */
export class VariationSearch {
  private best: FittedVariation | null = null;
  private fittedTo: number | null = null;
  /** How far the knee's place is uncertain by the choice of the law (ln). */
  private choiceError = 0;

  constructor(
    private readonly mode: LoadMode,
    private readonly slo: Slo,
  ) {}

  /** Whether laws were compared. */
  get fitted(): boolean {
    return this.fittedTo !== null;
  }

  /** Null: the steady one, or not known. */
  get law(): VariationLaw | null {
    return this.best?.law ?? null;
  }

  /**
   * Null for the steady law, and with too few trials.
   * @param start speed (ln) of the steady model, and the knee's place (ln of the load)
   * @param last no more trials will come
   */
  lawFor(
    system: ModelledSystem,
    trials: readonly KneeTrial[],
    start: { readonly logSpeed: number; readonly logKnee: number },
    last: boolean,
  ): (FittedVariation & { readonly choiceError: number }) | null {
    const enough = trials.length >= (last ? leastLawTrials : lawTrials);
    if (enough && this.fittedTo === null) {
      this.fittedTo = trials.length;
      const fits = fitVariation(system, trials, this.slo, start);
      this.best = fits[0] === undefined || fits[0].law === steady ? null : fits[0];
      this.choiceError = this.best === null ? 0 : this.disagreement(fits, Math.exp(start.logKnee));
    }
    return this.best === null ? null : { ...this.best, choiceError: this.choiceError };
  }

  /** How far apart (ln) the knees of about equally good laws lie. */
  private disagreement(fits: readonly FittedVariation[], near: number): number {
    const good = fits.filter(({ misfit }) => misfit <= goodMisfit * fits[0]!.misfit + 0.01).slice(0, 3);
    const knees = good.flatMap(({ system, logSpeed }) => {
      const knee = kneeOf(spedUp(system, Math.exp(logSpeed)), this.mode, this.slo, roughEffort, near);
      return knee === null ? [] : [Math.log(knee.value)];
    });
    return knees.length < 2
      ? lawErrorAlone
      : Math.max(lawErrorAlone, (Math.max(...knees) - Math.min(...knees)) / 2);
  }
}

/** A system and the speed at which it misses as often as the server did. */
export interface Following {
  readonly system: ModelledSystem;
  readonly estimate: SpeedEstimate;
}

/**
 * Null when no speed explains the misses.
 * @param law null: the speed varies from trial to trial
 */
export function followVarying(
  steadySystem: ModelledSystem,
  steadyEstimate: SpeedEstimate,
  trials: readonly KneeTrial[],
  logKnee: number,
  law: (FittedVariation & { readonly choiceError: number }) | null,
): Following | null {
  const { logSpeed, trend, spread, standardError } = steadyEstimate;
  const system = law === null ? steadySystem : varied(steadySystem, law.law);
  const matched =
    law === null
      ? matchMisses(pooledTrials(system, trials), { logSpeed, logKnee, trend }, spread)
      : matchMisses(pooledTrials(system, trials), { logSpeed: law.logSpeed, logKnee, trend: 0 }, 0);
  if (matched === null) return null;
  // Nine trials' misses hold few bad spells, and may agree by chance; what their seconds say is in the steady estimate's error.
  const sampling = Math.max(standardError, matched.standardError);
  const estimate: SpeedEstimate =
    law === null
      ? {
          ...steadyEstimate,
          spread: spread / shownByTrials,
          standardError: Math.hypot(sampling, steadyLawError, spellError * spread),
        }
      : {
          ...steadyEstimate,
          trend: 0,
          spread: 0,
          scatter: 1,
          standardError: Math.hypot(sampling, defaultErrorModel.floor, law.choiceError),
          degreesOfFreedom: Math.max(2, trials.length - 1),
        };
  return { system, estimate: { ...estimate, logSpeed: matched.logSpeed } };
}
