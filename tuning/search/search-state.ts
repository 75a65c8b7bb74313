/** What a search knows so far: trials, the fitted model, and where the knee lies by it. */
import { identify, type FittedLaw } from "../identify/identify";
import { observationOf, type Observation } from "../identify/observation";
import type { JudgedTrial } from "../outcome";
import { judge } from "../statistics/verdict";
import type { TrialResult, TrialSpec } from "../trial";
import { type Change, lastChange } from "./change";
import {
  combineFits,
  defaultErrorModel,
  type ErrorModel,
  type PlacedFit,
  type SpeedEstimate,
} from "./estimate";
import { valueOf } from "./load-axis";
import { kneeOf, type Knee, type ModelledSystem, roughEffort, spedUp } from "./model-knee";
import { excessOf } from "./quantile-excess";
import { fitSpeed, type SpeedFit } from "./speed-fit";
import type { SearchOptions } from "./strategy";

/** A trial on the searched axis, with what it says. */
export interface KneeTrial {
  readonly judged: JudgedTrial;
  /** Requests/s, or users. */
  readonly value: number;
  /** ln(quantile / bound): the SLO holds where it is <= 0. */
  readonly excess: number;
}

/** y this far from 0 is on one side of the knee without doubt, whatever the model says. */
const clearExcess = 0.5;
/** The law is fitted anew after these many knee trials; later ones hardly change it. */
const refitAfter = 2;

/** A last trial this far from the estimate (ln of the speed) leaves open whether the server changed. */
const unsettledBy = 0.03;
/** Of a trial that says nothing. */
const noFit: SpeedFit = { logSpeed: Infinity, slope: 0, excess: 0, modelExcess: 0 };

/** After a change the probe's prediction counts for little, and its place is where the trials since put it. */
function changedModel(fits: readonly PlacedFit[]): ErrorModel {
  const limit = Math.min(...fits.map(({ fit }) => fit.logSpeed));
  return { ...defaultErrorModel, prior: 0.15, priorAt: limit };
}

export class SearchState {
  readonly judged: JudgedTrial[] = [];
  readonly observations: Observation[] = [];
  /** Those near the knee, since the server last changed. */
  kneeTrials: readonly KneeTrial[] = [];
  /** All of them. */
  private readonly allKneeTrials: KneeTrial[] = [];
  fitted: FittedLaw | null = null;
  system: ModelledSystem | null = null;
  /** Of the model as the probe found it, before any trial near the knee. */
  predicted: Knee | null = null;
  estimate: SpeedEstimate | null = null;
  /** The server got slower during the search; null when it did not. */
  change: Change | null = null;
  /** Load of the knee by the current estimate; null when the model has none. */
  kneeValue: number | null = null;
  spentS = 0;
  /** Trials that stayed invalid, in a row and altogether. */
  lostInARow = 0;
  lost = 0;
  /** Lowest load whose trial stayed invalid. */
  lostAt = Infinity;
  private nextSeed: number;
  private fits: PlacedFit[] = [];

  constructor(readonly options: SearchOptions) {
    this.nextSeed = options.seed * 1000 + 1;
  }

  /** A seed that no other trial of this search has. */
  takeSeed(): number {
    return this.nextSeed++;
  }

  /** Whether another trial of this length fits the budget. */
  affords(lengthS: number): boolean {
    return this.spentS + lengthS <= this.options.budget.totalS;
  }

  /** Takes in a trial's result; null when it stayed invalid. */
  add(spec: TrialSpec, result: TrialResult | null): void {
    this.spentS += spec.warmupS + spec.measureS;
    if (result === null) {
      this.lost++;
      this.lostInARow++;
      if (spec.purpose !== "probe") this.lostAt = Math.min(this.lostAt, valueOf(spec.shape));
      return;
    }
    this.lostInARow = 0;
    const judged = judge(spec, result);
    this.judged.push(judged);
    const observation = observationOf(spec, result, this.options.facts.clientCeilingPerS);
    if (observation !== null) this.observations.push(observation);
    if (spec.purpose === "probe") return;
    const excess = excessOf(result.load, spec.slo);
    if (Number.isNaN(excess)) return;
    this.allKneeTrials.push({ judged, value: valueOf(spec.shape), excess });
    this.kneeTrials = this.allKneeTrials.slice(this.change?.from ?? 0);
  }

  /** Fits law, speeds and knee to all that is known. */
  update(): void {
    const fresh = this.system === null || this.allKneeTrials.length <= refitAfter;
    if (fresh) this.refitLaw();
    if (this.system === null) return;
    for (const { judged, value } of this.allKneeTrials.slice(this.fits.length)) {
      const fit = fitSpeed(this.system, judged.spec, judged.result, this.estimate?.logSpeed ?? 0);
      this.fits.push({ logValue: Math.log(value), fit: fit ?? noFit });
    }
    if (this.fits.length === 0) {
      const knee = this.kneeAt(0);
      this.predicted = knee;
      this.kneeValue = knee?.value ?? null;
      return;
    }
    const base = this.kneeAt(this.estimate?.logSpeed ?? 0);
    if (base === null) {
      this.kneeValue = null;
      return;
    }
    this.change = lastChange(this.fits, Math.log(base.value), defaultErrorModel);
    this.kneeTrials = this.allKneeTrials.slice(this.change?.from ?? 0);
    const fits = this.fits.slice(this.change?.from ?? 0);
    const baseSpeed = this.estimate?.logSpeed ?? 0;
    // Between two nearby speeds the knee moves about in proportion; it is simulated anew at the result.
    const logKnee = (logSpeed: number): number => Math.log(base.value) + (logSpeed - baseSpeed);
    this.estimate = combineFits(fits, logKnee, this.change === null ? defaultErrorModel : changedModel(fits));
    this.kneeValue = this.kneeAt(this.estimate.logSpeed, base.value)?.value ?? null;
  }

  /** Knee of the model at a speed, by rough simulation. */
  kneeAt(logSpeed: number, guess?: number): Knee | null {
    if (this.system === null) return null;
    const { mode, slo } = this.options;
    const spread = this.estimate?.spread ?? 0;
    return kneeOf(
      spedUp(this.system, Math.exp(logSpeed)),
      mode,
      slo,
      roughEffort,
      guess ?? this.kneeValue ?? undefined,
      spread,
    );
  }

  /** Largest load that held without doubt, and smallest that did not; 0 and Infinity when there is none. */
  get clear(): { low: number; high: number } {
    let low = 0;
    let high = Infinity;
    for (const { value, excess } of this.kneeTrials) {
      if (excess < -clearExcess) low = Math.max(low, value);
      if (excess > clearExcess) high = Math.min(high, value);
    }
    // Contradicting trials say nothing.
    return low < high ? { low, high } : { low: 0, high: Infinity };
  }

  /** Highest load of a valid trial below the lowest that stayed invalid; 0 without one. */
  get highestOffered(): number {
    return this.kneeTrials.reduce(
      (high, { value }) => (value < this.lostAt && value > high ? value : high),
      0,
    );
  }

  /** Whether the last trial says something else than those before it: more trials have to show which is right. */
  get unsettled(): boolean {
    const last = this.fits.at(-1);
    if (last === undefined || this.estimate === null || this.fits.length < 2) return false;
    const off = last.fit.logSpeed - this.estimate.logSpeed;
    return off < -unsettledBy || (last.fit.slope > 0 && off > unsettledBy);
  }

  private refitLaw(): void {
    this.fitted = identify(this.observations);
    if (this.fitted === null) return;
    const { law, overheadMs } = this.fitted;
    const { variant, facts } = this.options;
    const server = { ...variant, dynamicBatching: true, law, scheduler: facts.scheduler };
    this.system = { server, overheadMs };
    this.fits = [];
  }
}
