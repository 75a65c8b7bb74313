/** What a search knows so far: trials, the fitted model, and where the knee lies by it. */
import { identify, type FittedLaw } from "../identify/identify";
import type { VariationLaw } from "../identify/variation";
import { observationOf, type Observation } from "../identify/observation";
import type { JudgedTrial, RacedOut } from "../outcome";
import { judge } from "../statistics/verdict";
import type { TrialResult, TrialSpec } from "../trial";
import { steadyTolerance } from "./bracket";
import { type Change, lastChange } from "./change";
import {
  combineFits,
  defaultErrorModel,
  type ErrorModel,
  type PlacedFit,
  type SpeedEstimate,
} from "./estimate";
import { clearLoads, type KneeTrial, thoroughMissesOf } from "./knee-trials";
import { valueOf } from "./load-axis";
import { kneeOf, type Knee, type ModelledSystem, roughEffort, spedUp } from "./model-knee";
import { excessOf } from "./quantile-excess";
import { fitSpeed, type SpeedFit } from "./speed-fit";
import type { ComparedTrial } from "./seen-knee";
import type { SearchOptions } from "./strategy";
import { type Following, followVarying, VariationSearch } from "./varying";

/** The law is fitted anew after these many knee trials; later ones hardly change it. */
const refitAfter = 2;

/** Power now over that of the first probe, from which on the GPU came to its limit only since. */
const powerRise = 1.15;
/** A spread or a trend below these hardly moves the knee. */
const leastSpread = 0.003;
const leastTrend = 0.3;
/** Scatter of few trials by chance, over what is expected of them. */
const muchScatter = 1.25;
/** Trials near the knee from which on the estimate follows a server that varies. */
const variationTrials = 5;
/** Following takes much time: only every so many trials. */
const followEvery = 2;
const varyingTolerance = 0.1;
/** A last trial this far from the estimate (ln of the speed) leaves open whether the server changed. */
const unsettledBy = 0.03;
/** Of a trial that says nothing. */
const noFit: SpeedFit = { logSpeed: Infinity, slope: 0, excess: 0, modelExcess: 0, course: null };

/** After a change the probe's prediction counts for little, and its place is where the trials since put it. */
function changedModel(fits: readonly PlacedFit[]): ErrorModel {
  const limit = Math.min(...fits.map(({ fit }) => fit.logSpeed));
  return { ...defaultErrorModel, prior: 0.15, priorAt: limit };
}

/** An estimate that follows a varying server, and the number of trials that it was made of. */
interface Followed extends Following {
  readonly trials: number;
  kneeValue: number | null;
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
  /** The model's knee was so far from all trials that they alone have the answer. */
  overruled = false;
  /** It lost the race against another variant; null while it has not. */
  racedOut: RacedOut | null = null;
  spentS = 0;
  /** Trials that stayed invalid, in a row and altogether. */
  lostInARow = 0;
  lost = 0;
  /** Lowest load whose trial stayed invalid. */
  lostAt = Infinity;
  private nextSeed: number;
  private fits: PlacedFit[] = [];
  /** The fitted system without variation, and the estimate by it. */
  private steadySystem: ModelledSystem | null = null;
  private steadyEstimate: SpeedEstimate | null = null;
  private readonly variation: VariationSearch;
  private followed: Followed | null = null;

  constructor(readonly options: SearchOptions) {
    this.nextSeed = options.seed * 1000 + 1;
    this.variation = new VariationSearch(options.mode, options.slo);
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
      const fit = fitSpeed(
        this.steadySystem!,
        judged.spec,
        judged.result,
        this.steadyEstimate?.logSpeed ?? 0,
      );
      this.fits.push({ logValue: Math.log(value), fit: fit ?? noFit });
    }
    if (this.fits.length === 0) {
      const knee = this.kneeAt(0);
      this.predicted = knee;
      this.kneeValue = knee?.value ?? null;
      return;
    }
    this.system = this.steadySystem;
    const baseSpeed = this.steadyEstimate?.logSpeed ?? 0;
    const base = this.kneeAt(baseSpeed, undefined, this.steadyEstimate?.spread);
    if (base === null) {
      this.kneeValue = null;
      return;
    }
    this.change = lastChange(this.fits, Math.log(base.value), defaultErrorModel);
    this.kneeTrials = this.allKneeTrials.slice(this.change?.from ?? 0);
    const fits = this.fits.slice(this.change?.from ?? 0);
    // Between two nearby speeds the knee moves about in proportion; it is simulated anew at the result.
    const logKnee = (logSpeed: number): number => Math.log(base.value) + (logSpeed - baseSpeed);
    const model = this.change === null ? defaultErrorModel : changedModel(fits);
    this.steadyEstimate = this.estimate = combineFits(fits, logKnee, model);
    this.kneeValue = this.kneeAt(this.estimate.logSpeed, base.value)?.value ?? null;
    if (!this.varies || this.kneeTrials.length < variationTrials) this.followed = null;
    else if (this.followed === null || this.kneeTrials.length >= this.followed.trials + followEvery)
      this.follow();
    else this.adopt(this.followed);
  }

  /** How far the knee may lie outside what single trials held or missed, relative: a varying server holds or misses by chance. */
  get tolerance(): number {
    if (this.followed === null || this.estimate === null) return steadyTolerance;
    return Math.max(varyingTolerance, 4 * this.estimate.standardError);
  }

  /** Takes the last trials in, too, where the estimate follows a varying server; for the answer. */
  settle(): void {
    const { followed, kneeTrials } = this;
    if (followed === null) return;
    if (followed.trials < kneeTrials.length || !this.variation.fitted) this.follow(true);
  }

  /**
   * Where the server's speed varies, its misses in the long run count, not its mean speed.
   * @param last no more trials will come
   */
  private follow(last = false): void {
    const { steadySystem, steadyEstimate, kneeValue, kneeTrials } = this;
    if (steadySystem === null || steadyEstimate === null || kneeValue === null) return;
    const start = { logSpeed: steadyEstimate.logSpeed, logKnee: Math.log(kneeValue) };
    const law = this.variation.lawFor(steadySystem, kneeTrials, start, last);
    const following = followVarying(steadySystem, steadyEstimate, kneeTrials, start.logKnee, law);
    if (following === null) return;
    this.followed = { ...following, trials: kneeTrials.length, kneeValue };
    this.adopt(this.followed);
    this.kneeValue = this.kneeAt(following.estimate.logSpeed, kneeValue)?.value ?? null;
    this.followed.kneeValue = this.kneeValue;
  }

  private adopt({ system, estimate, kneeValue }: Followed): void {
    this.system = system;
    this.estimate = estimate;
    this.kneeValue = kneeValue;
  }

  /** Trials near the knee against the model at the estimated speed; none where the estimate follows how the server varies. */
  get compared(): ComparedTrial[] {
    const { estimate, followed } = this;
    if (estimate === null || followed !== null) return [];
    return this.kneeTrials.map((trial) => {
      // The last ones may not have been fitted: the search was stopped, or only wanted to see whether they hold.
      const fit = this.fits[this.allKneeTrials.indexOf(trial)]?.fit ?? noFit;
      return { trial, surprise: fit.slope > 0 ? fit.slope * (estimate.logSpeed - fit.logSpeed) : 0 };
    });
  }

  /** The law of variation that the estimate follows; null: none. */
  get variationLaw(): VariationLaw | null {
    return this.system?.server.variationFor === undefined ? null : this.variation.law;
  }

  /**
   * How much slower (ln) the server became since it was first loaded; null when it did not. A probe is short and before everything else, so
   * a GPU that reached its power limit since then shows there too.
   */
  get slowerBy(): number | null {
    if (this.change !== null) return this.change.logRatio;
    const power = (judged: JudgedTrial | undefined): number | null => judged?.result.server.gpuPowerW ?? null;
    const [first, last] = [power(this.judged[0]), power(this.judged.at(-1))];
    const slower = this.steadyEstimate !== null && this.steadyEstimate.logSpeed < -unsettledBy;
    return slower && first !== null && last !== null && last > first * powerRise
      ? this.steadyEstimate!.logSpeed
      : null;
  }

  /** Whether trials, or the seconds within them, scatter more than those of a steady server, or their knee has another shape. */
  get varies(): boolean {
    const { steadyEstimate } = this;
    if (steadyEstimate === null) return false;
    return steadyEstimate.spread > leastSpread || Math.abs(steadyEstimate.trend) > leastTrend;
  }

  /** Whether the trials scatter more than their own seconds let expect, or their knee has another shape. */
  get disagrees(): boolean {
    const { steadyEstimate } = this;
    if (steadyEstimate === null) return false;
    return steadyEstimate.scatter > muchScatter || Math.abs(steadyEstimate.trend) > leastTrend;
  }

  /** Standard deviation (ln) of the speed from trial to trial that the estimate has no law for. */
  get trialSpread(): number {
    return this.variationLaw === null ? (this.steadyEstimate?.spread ?? 0) : 0;
  }

  /** Whether a trial well below the knee is wanted: it shows what misses have nothing to do with the load. */
  get wantsFarTrial(): boolean {
    const { kneeValue, kneeTrials } = this;
    if (kneeValue === null || !this.varies || kneeTrials.length < variationTrials - 1) return false;
    return !kneeTrials.some(({ value }) => value < 0.92 * kneeValue && value > 0.75 * kneeValue);
  }

  /** Knee of the model at a speed, by rough simulation. */
  kneeAt(logSpeed: number, guess?: number, spread = this.estimate?.spread ?? 0): Knee | null {
    if (this.system === null) return null;
    const { mode, slo } = this.options;
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
    return clearLoads(this.kneeTrials);
  }

  /** Highest load of a valid trial below the lowest that stayed invalid; 0 without one. */
  get highestOffered(): number {
    return this.kneeTrials.reduce(
      (high, { value }) => (value < this.lostAt && value > high ? value : high),
      0,
    );
  }

  /** Trials in a row, up to the last one, that missed so thoroughly that they only give a limit. */
  get thoroughMisses(): number {
    return thoroughMissesOf(this.fits);
  }

  /** Whether the last trial says something else than those before it: more trials have to show which is right. */
  get unsettled(): boolean {
    const last = this.fits.at(-1);
    if (last === undefined || this.estimate === null || this.fits.length < 2) return false;
    const off = last.fit.logSpeed - this.steadyEstimate!.logSpeed;
    return off < -unsettledBy || (last.fit.slope > 0 && off > unsettledBy);
  }

  private refitLaw(): void {
    this.fitted = identify(this.observations);
    if (this.fitted === null) return;
    const { law, overheadMs } = this.fitted;
    const { variant, facts } = this.options;
    const server = { ...variant, dynamicBatching: true, law, scheduler: facts.scheduler };
    this.system = this.steadySystem = { server, overheadMs };
    this.fits = [];
  }
}
