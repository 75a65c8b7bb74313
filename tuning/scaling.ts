/**
 * Whether rates add up over replicas: the documents take that for granted. Where more than one replica serves, the recommended
 * variant's rate is tried on all of them together; on request the rate of several is measured.
 */
import type { Variant } from "../model-repo/variant";
import type { LiveRunner } from "./live-runner";
import type { Interval } from "./outcome";
import { excessOf } from "./search/quantile-excess";
import { judge } from "./statistics/verdict";
import type { TargetEndpoints } from "./target";
import type { Slo, TrialResult, TrialSpec } from "./trial";

export interface ScalingCheck {
  /** All replicas. */
  readonly replicas: TargetEndpoints;
  readonly runner: Pick<LiveRunner, "runOn">;
  readonly variant: Variant;
  readonly slo: Slo;
  readonly seed: number;
  readonly signal: AbortSignal;
}

/** What several replicas hold together. */
export interface Scaling {
  readonly replicas: number;
  /** Requests per second of all of them. The interval lies between the highest rate that held and the lowest that did not. */
  readonly sloRate: Interval;
  /** sloRate over the SLO rate of one: as many as there are replicas, if rates add up. */
  readonly factor: number;
}

const WARMUP_S = 3;
const MEASURE_S = 15;
/** Trials for one number of replicas, at most. */
const MOST_TRIALS = 5;
/** First step away from where the last trial was, as a factor; later ones lie between those that held and those that did not. */
const STEP = 1.1;
/** Held and missed rates this near to each other are near enough, as a factor. */
const NEAR = 1.04;

/** What is known of several replicas. */
export interface ScalingFindings {
  readonly measured: readonly Scaling[];
  /** Sentences for the result. */
  readonly notes: readonly string[];
}

/**
 * @param operatingRate of one replica, requests per second
 * @param single SLO rate of one replica
 * @param counts numbers of replicas whose rate is to be measured; null: all of them are tried once, at their operating rates
 */
export async function findScaling(
  check: ScalingCheck,
  operatingRate: number,
  single: number,
  counts: readonly number[] | null,
): Promise<ScalingFindings> {
  if (counts === null) return { measured: [], notes: [await checkScaling(check, operatingRate)] };
  const measured: Scaling[] = [];
  const notes: string[] = [];
  // What one of them holds was the sweep's own question.
  for (const count of counts.filter((number) => number > 1)) {
    const scaling = await measureScaling(check, count, single);
    if (typeof scaling === "string") notes.push(scaling);
    else measured.push(scaling);
  }
  return { measured, notes };
}

/** A sentence for the result about all replicas at their operating rates together. */
export async function checkScaling(check: ScalingCheck, operatingRate: number): Promise<string> {
  const count = check.replicas.grpc.length;
  const what = `${count} servers at ${count} x ${operatingRate.toFixed(1)} requests/s`;
  try {
    const [spec, result] = await trialOn(check, count, count * operatingRate, 0);
    const { verdict, missShare } = judge(spec, result);
    const answered = Object.values(result.load.perAddress);
    const total = answered.reduce((sum, one) => sum + one, 0);
    const shares = answered.map((one) => `${((100 * one) / total).toFixed(0)} %`).join(", ");
    const missed = `${(100 * missShare.estimate).toFixed(1)} % missed the bound; shares of the servers: ${shares}`;
    if (verdict === "fail")
      return `${what} do not hold the SLO (${missed}): the rate of one server does not simply add up`;
    const surely = verdict === "pass" ? "" : `, as far as ${MEASURE_S} s show`;
    return `${what} hold the SLO${surely} (${missed}): rates add up`;
  } catch (error) {
    return `${what}: not known (${messageOf(error)})`;
  }
}

/**
 * Measures what `count` replicas hold, starting from what they would hold if rates added up.
 * @param single SLO rate of one replica
 * @returns why it is not known, in a sentence, where it is not
 */
export async function measureScaling(
  check: ScalingCheck,
  count: number,
  single: number,
): Promise<Scaling | string> {
  const seen: Point[] = [];
  try {
    for (let tried = 0; tried < MOST_TRIALS; tried++) {
      const ratePerS = nextRate(seen, count * single);
      if (ratePerS === null) break;
      const [, { load }] = await trialOn(check, count, ratePerS, tried + 1);
      seen.push({ ratePerS, excess: excessOf(load, check.slo) });
    }
  } catch (error) {
    return `${count} servers: what they hold together is not known (${messageOf(error)})`;
  }
  const sloRate = crossing(seen);
  if (sloRate === null)
    return `${count} servers hold the SLO at no rate near ${count} x ${single.toFixed(1)} requests/s that was tried`;
  return { replicas: count, sloRate, factor: sloRate.estimate / single };
}

/** One trial on several replicas: ln(quantile / bound) is at most 0 where the SLO holds. */
export interface Point {
  readonly ratePerS: number;
  readonly excess: number;
}

/** The next rate to try; null when held and missed rates are near enough. */
export function nextRate(seen: readonly Point[], first: number): number | null {
  const last = seen.at(-1);
  if (last === undefined) return first;
  const { held, missed } = bracketOf(seen);
  if (held && missed)
    return missed.ratePerS / held.ratePerS <= NEAR ? null : Math.sqrt(held.ratePerS * missed.ratePerS);
  return missed ? missed.ratePerS / STEP : held!.ratePerS * STEP;
}

/** Where the SLO's quantile crosses the bound, between the trials that held and missed; null when none held. */
export function crossing(seen: readonly Point[]): Interval | null {
  const { held, missed } = bracketOf(seen);
  if (held === null) return null;
  const level = 0.95;
  if (missed === null)
    return { estimate: held.ratePerS, low: held.ratePerS, high: held.ratePerS * STEP, level };
  // Between two rates the logarithm of the quantile is about a straight line over that of the rate.
  const share = held.excess === missed.excess ? 0.5 : -held.excess / (missed.excess - held.excess);
  const estimate = held.ratePerS * (missed.ratePerS / held.ratePerS) ** share;
  return { estimate, low: held.ratePerS, high: missed.ratePerS, level };
}

/** Highest rate that held below the lowest that missed; trials that contradict each other by chance are settled for the lower rate. */
function bracketOf(seen: readonly Point[]): { held: Point | null; missed: Point | null } {
  const sorted = [...seen].sort((one, other) => one.ratePerS - other.ratePerS);
  const firstMiss = sorted.findIndex(({ excess }) => excess > 0);
  const below = firstMiss === -1 ? sorted : sorted.slice(0, firstMiss);
  return { held: below.at(-1) ?? null, missed: sorted[firstMiss] ?? null };
}

/** @throws Error when it cannot be run or is invalid */
async function trialOn(
  { replicas, runner, variant, slo, seed, signal }: ScalingCheck,
  count: number,
  ratePerS: number,
  index: number,
): Promise<readonly [TrialSpec, TrialResult]> {
  const spec: TrialSpec = {
    variant,
    shape: { kind: "poisson", ratePerS },
    slo,
    seed: seed * 1000 + 500 + 10 * count + index,
    warmupS: WARMUP_S,
    measureS: MEASURE_S,
    purpose: "verify",
  };
  const endpoints: TargetEndpoints = {
    grpc: replicas.grpc.slice(0, count),
    metrics: replicas.metrics.slice(0, count),
  };
  const result = await runner.runOn(() => endpoints, spec, undefined, signal);
  if (result.load.valid) return [spec, result];
  throw new Error(`the trial was invalid (${result.load.invalidReasons.join("; ")})`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
