/**
 * Waits until a server that was just told to load a model is as fast as it stays. TF-TRT, and TensorRT under ONNX Runtime, build their
 * engines at the first requests of each batch size, for seconds or minutes, although the model is ready by then; a repository with
 * `model_warmup` has that behind it. Where there is none, short closed loops are run until two in a row take equally long.
 *
 * What it cannot see is a server that is equally slow for longer than two windows and faster later; trials that differ show that.
 */
import type { LoadResult, LoadShape } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";

/** How a server became warm. */
export interface WarmUp {
  /** Wall seconds until two windows agreed, or it was given up. */
  readonly seconds: number;
  readonly windows: number;
  /** 95th percentile of the response times in the first and in the last window, milliseconds; null: nothing was answered. */
  readonly firstP95Ms: number | null;
  readonly lastP95Ms: number | null;
  /** False: the windows still differed, or requests failed, when time was up. */
  readonly settled: boolean;
}

/** What the watch shows after a window. */
export interface WarmUpProgress {
  readonly elapsedS: number;
  readonly p95Ms: number | null;
}

export interface WarmUpOptions {
  readonly variant: Variant;
  readonly boundMs: number;
  /** One window of load. A request may take as long as an engine takes to be built. */
  readonly run: (shape: LoadShape, measureS: number) => Promise<Pick<LoadResult, "response" | "total">>;
  /** Wall clock, seconds. */
  readonly nowS: () => number;
  readonly onProgress?: (progress: WarmUpProgress) => void;
}

/** Users come one by one within this, so that every number in flight, and with it every batch size, occurs; then they stay a little. */
const RAMP_S = 0.4;
const WINDOW_S = 0.6;
/** A window in which each user had but one answer says nothing: it has to hold so many, and the next one is made as long as that takes. */
const LEAST_ROUNDS = 2;
const WINDOW_P95S = 4;
const LONGEST_WINDOW_S = 8;
/** More users than this fill no larger batches, but the load workers' memory. */
const MOST_USERS = 256;
/** Windows agree when they differ by less than a third, or by a twentieth of the SLO's bound: chance does that, no engine. */
const AGREEMENT = 1 / 3;
const NEGLIGIBLE_BOUNDS = 0.05;
/** Given up after so many windows, and not begun anew after so long: what still changes then is no warm-up. */
const MOST_WINDOWS = 20;
const MOST_S = 900;

/** @throws what `run` throws */
export async function waitUntilWarm(options: WarmUpOptions): Promise<WarmUp> {
  const { variant, boundMs, run, nowS, onProgress } = options;
  const users = Math.min(MOST_USERS, variant.maxBatchSize * variant.instanceCount);
  const shape: LoadShape = { kind: "users", users, spawnPerS: users / RAMP_S, thinkMinS: 0, thinkMaxS: 0 };
  const from = nowS();
  const p95s: (number | null)[] = [];
  /** The last window's percentile, if it may be compared with. */
  let comparable: number | null = null;
  let measureS = WINDOW_S;
  onProgress?.({ elapsedS: 0, p95Ms: null });
  for (;;) {
    const { response, total } = await run(shape, measureS);
    const p95Ms = response.count === 0 ? null : response.p95Ms;
    const saysEnough = response.count >= LEAST_ROUNDS * users || measureS === LONGEST_WINDOW_S;
    p95s.push(p95Ms);
    const seconds = nowS() - from;
    onProgress?.({ elapsedS: seconds, p95Ms });
    const settled = total.failed === 0 && saysEnough && agree(comparable, p95Ms, boundMs);
    if (settled || p95s.length >= MOST_WINDOWS || seconds >= MOST_S)
      return { seconds, windows: p95s.length, firstP95Ms: p95s[0]!, lastP95Ms: p95Ms, settled };
    comparable = saysEnough ? p95Ms : null;
    measureS = Math.min(LONGEST_WINDOW_S, Math.max(WINDOW_S, (WINDOW_P95S * (p95Ms ?? 0)) / 1000));
  }
}

function agree(previousMs: number | null, p95Ms: number | null, boundMs: number): boolean {
  if (previousMs === null || p95Ms === null) return false;
  const difference = Math.abs(p95Ms - previousMs);
  return difference <= Math.max(Math.min(previousMs, p95Ms) * AGREEMENT, boundMs * NEGLIGIBLE_BOUNDS);
}

/** For the result, where the server did not settle; else null. */
export function unsettledNote({ settled, seconds, firstP95Ms, lastP95Ms }: WarmUp): string | null {
  if (settled) return null;
  const ms = (value: number | null): string => (value === null ? "no answer" : `${value.toFixed(1)} ms`);
  return (
    `Its server did not settle within ${seconds.toFixed(0)} s of short loads before the first trial (p95 ${ms(firstP95Ms)} at first, ` +
    `${ms(lastP95Ms)} at last): engines that are still being built, or something else on its machine, may be in the figures.`
  );
}
