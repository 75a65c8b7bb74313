/** Whether rates add up over replicas: the documents take that for granted; here it is tried once, at the recommended variant's rate. */
import type { Variant } from "../model-repo/variant";
import type { LiveRunner } from "./live-runner";
import { judge } from "./statistics/verdict";
import type { OpenTarget } from "./target";
import type { Slo, TrialSpec } from "./trial";

export interface ScalingCheck {
  readonly target: OpenTarget;
  readonly runner: Pick<LiveRunner, "runOn">;
  readonly variant: Variant;
  /** Rate of one replica, requests per second. */
  readonly operatingRate: number;
  readonly slo: Slo;
  readonly seed: number;
  readonly signal: AbortSignal;
}

const WARMUP_S = 3;
const MEASURE_S = 15;

/** A sentence for the result; null when there is one replica only. */
export async function checkScaling(check: ScalingCheck): Promise<string | null> {
  const { target, runner, variant, operatingRate, slo, seed, signal } = check;
  const replicas = target.replicas?.();
  if (replicas === undefined || replicas.grpc.length < 2) return null;
  const count = replicas.grpc.length;
  const ratePerS = count * operatingRate;
  const spec: TrialSpec = {
    variant,
    shape: { kind: "poisson", ratePerS },
    slo,
    seed: seed * 1000,
    warmupS: WARMUP_S,
    measureS: MEASURE_S,
    purpose: "verify",
  };
  const what = `${count} servers at ${count} x ${operatingRate.toFixed(1)} requests/s`;
  try {
    const result = await runner.runOn(() => replicas, spec, undefined, signal);
    if (!result.load.valid)
      return `${what}: not known, the trial was invalid (${result.load.invalidReasons.join("; ")})`;
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
    return `${what}: not known (${error instanceof Error ? error.message : String(error)})`;
  }
}
