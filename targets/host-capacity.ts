/**
 * How many requests a second this machine passes between the load workers and the embedded server, and the time dilation that
 * follows: where a variant answers more than that, the simulated T4 plays in slower time, and everything is reported in model time.
 */
import type { LoadClient, LoadResult } from "../loadgen/load-spec";
import type { Variant } from "../model-repo/variant";

/**
 * Share of the machine's highest rate that a trial may ask for. Above it, the client's and the server's own queueing would be
 * measured together with the variant: two slow cores that nothing else used kept lateness p99 under 2 ms at about 740 requests of 602 kB
 * a second.
 */
const USABLE_SHARE = 0.3;
/** Requests kept in flight by the probe: enough to keep both sides busy, too few to measure only buffering. */
const PROBE_CONCURRENCY = 24;
const PROBE_WARMUP_S = 0.5;
const PROBE_MEASURE_S = 1.5;

/** Highest request rate between workers and server at this payload, by a closed loop without think time; wall time. */
export async function probeHostCapacity(
  load: LoadClient,
  variant: Variant,
  address: string,
  imageFolder: string,
): Promise<number> {
  const { input, output } = variant.artefact;
  const result = await load.run({
    id: `host-capacity-${Date.now().toString(36)}`,
    addresses: [address],
    modelName: variant.name,
    inputName: input.name,
    outputName: output.name,
    inputType: input.type,
    inputDims: input.dims,
    imageFolder,
    knownAnswers: null,
    scoreTolerance: 1,
    checkEvery: 0,
    shape: { kind: "users", users: PROBE_CONCURRENCY, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 },
    seed: 1,
    warmupS: PROBE_WARMUP_S,
    measureS: PROBE_MEASURE_S,
    sloBoundMs: 1000,
    deadlineMs: 10_000,
    maxInFlight: PROBE_CONCURRENCY,
    connectionsPerAddress: 4,
    transport: "lean",
    timeDilation: 1,
  });
  return answeredPerS(result);
}

function answeredPerS(result: LoadResult): number {
  if (result.response.count === 0) {
    throw new Error(
      `the capacity probe got no answer: ${JSON.stringify(result.errors)} ${result.invalidReasons.join("; ")}`,
    );
  }
  return (result.response.count * 1000) / (result.measuredToUnixMs - result.measuredFromUnixMs);
}

/** Wall seconds per model second for a variant that answers at most `variantCapacityPerS`, rounded up to a tenth. */
export function dilationFor(variantCapacityPerS: number, hostCapacityPerS: number): number {
  const needed = variantCapacityPerS / (hostCapacityPerS * USABLE_SHARE);
  return Math.max(1, Math.ceil(needed * 10) / 10);
}
