import type * as k8s from "@pulumi/kubernetes";

/**
 * Time that a GPU pod may need before Triton starts to load a model, seconds: a node from zero with its driver (5 minutes,
 * up to 10 seen) and the pull of a 10 GB image (3 to 5 minutes).
 */
export const nodeStartBudgetS = 600;
export const imagePullBudgetS = 300;

/** Smallest time to wait for the rollout that still contains everything that may legitimately take long. */
export function smallestReadinessBudgetS(modelLoadBudgetS: number): number {
  return nodeStartBudgetS + imagePullBudgetS + modelLoadBudgetS;
}

export interface StartupInput {
  /** Longest time a model may take to load, seconds, engine build and warm-up included. */
  readonly modelLoadBudgetS: number;
  /** Port of Triton's HTTP endpoint. */
  readonly httpPort: number;
}

type Probe = k8s.types.input.core.v1.Probe;

const startupPeriodS = 10;

/**
 * Probes of a server that may load for minutes. The startup probe covers the whole load budget and one restart of the
 * credentials' metadata server; liveness looks at the process alone, because readiness drops on purpose while a sweep
 * exchanges the variant.
 */
export function tritonProbes(input: StartupInput): { startup: Probe; readiness: Probe; liveness: Probe } {
  const get = (path: string) => ({ path, port: input.httpPort });
  return {
    startup: {
      httpGet: get("/v2/health/ready"),
      periodSeconds: startupPeriodS,
      timeoutSeconds: 5,
      failureThreshold: Math.ceil(input.modelLoadBudgetS / startupPeriodS) + 3,
    },
    readiness: { httpGet: get("/v2/health/ready"), periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 2 },
    liveness: { httpGet: get("/v2/health/live"), periodSeconds: 15, timeoutSeconds: 10, failureThreshold: 4 },
  };
}

/**
 * Seconds between a pod's removal from the Services and SIGTERM. Triton closes its HTTP port (readiness included) at once
 * on SIGTERM and refuses new gRPC requests, so clients must have gone before.
 */
export const preStopS = 15;

/** Seconds that Triton may take to finish requests in flight (`--exit-timeout-secs`). */
export const exitTimeoutS = 30;

/** terminationGracePeriodSeconds: the delay, the drain and a margin for the process to end. */
export const terminationGraceS = preStopS + exitTimeoutS + 15;
