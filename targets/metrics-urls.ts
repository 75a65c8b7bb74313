/** Finds /metrics of running servers, and what it says about them besides Triton's counters. */
import { splitHostPort } from "../loadgen/host-port";
import { parsePrometheusText, type MetricSample } from "../tuning/prometheus-text";
import { TargetError } from "./target-error";

/** Triton's default --metrics-port. */
const DEFAULT_METRICS_PORT = 8002;
const TIMEOUT_MS = 3000;
/** Every Triton has families of this prefix from its start; those of inference come with the first model. */
const TRITON_FAMILY = /^# HELP nv_/m;

export interface FoundMetrics {
  /** One URL an address; empty when the servers' metrics cannot be reached. */
  readonly urls: readonly string[];
  /** Samples of all servers together. */
  readonly samples: readonly MetricSample[];
  /** Why there are none; null when there are. */
  readonly missing: string | null;
}

/**
 * @param given URLs of --metrics, one an address; null: port 8002 of every address, if it answers there
 * @throws TargetError when given URLs do not answer with Triton's metrics
 */
export async function findMetrics(
  addresses: readonly string[],
  given: readonly string[] | null,
): Promise<FoundMetrics> {
  const urls = given ?? addresses.map(defaultUrl);
  if (given !== null && given.length !== addresses.length)
    throw new TargetError(
      `--metrics names ${given.length} URL(s) for ${addresses.length} server(s): give one for each, in the same order`,
    );
  if (new Set(urls).size < urls.length) {
    const several = "several servers on one host have different metrics ports";
    return { urls: [], samples: [], missing: `${several}: name them with --metrics URL,URL` };
  }
  try {
    const texts = await Promise.all(urls.map(read));
    return { urls, samples: texts.flatMap(parsePrometheusText), missing: null };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (given !== null) throw new TargetError(`${reason}. Check --metrics, or leave it out.`);
    return { urls: [], samples: [], missing: `${reason}; name another URL with --metrics` };
  }
}

/** True when the servers report their GPUs. */
export function hasGpuMetrics(samples: readonly MetricSample[]): boolean {
  return samples.some(({ name }) => name === "nv_gpu_utilization");
}

function defaultUrl(address: string): string {
  const { host } = splitHostPort(address);
  return `http://${host.includes(":") ? `[${host}]` : host}:${DEFAULT_METRICS_PORT}/metrics`;
}

async function read(url: string): Promise<string> {
  let text: string;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    text = await response.text();
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new Error(`${url} cannot be read (${cause instanceof Error ? cause.message : String(cause)})`);
  }
  if (!TRITON_FAMILY.test(text))
    throw new Error(`${url} is not Triton's: it has no metrics that begin with nv_`);
  return text;
}
