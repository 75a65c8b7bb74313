/** Job labels of what is scraped. Google's managed collection calls its PodMonitoring objects the same, and so the jobs. */
export const jobs = {
  /** Metrics of each Triton server. */
  triton: "triton",
  /** Readiness of each Triton server: `up` is 1 when all its models are ready, 0 when not. */
  tritonReady: "triton-ready",
  /** The load controller. */
  load: "load-generator",
} as const;

/** Namespaces of Google's collectors: the one that GKE manages, and the older one. */
export const collectorNamespaces: readonly string[] = ["gke-gmp-system", "gmp-system"];

/** A port of a group of pods to scrape. */
export interface ScrapeTarget {
  readonly job: string;
  readonly namespace: string;
  /** Value of the pods' label `app`. */
  readonly app: string;
  /** Name of the container port. */
  readonly portName: string;
  /** Default `/metrics`. */
  readonly path?: string;
}

/** Where servers and load controller are. */
export interface ScrapedPods {
  readonly tritonNamespace: string;
  readonly tritonApp: string;
  readonly loadNamespace: string;
  readonly loadApp: string;
}

/**
 * Everything that is scraped. Triton's metrics say nothing of readiness; its readiness endpoint answers 200 without a body or an error,
 * which to Prometheus is a scrape that works or fails.
 */
export function scrapeTargets(pods: ScrapedPods): ScrapeTarget[] {
  const triton = { namespace: pods.tritonNamespace, app: pods.tritonApp };
  return [
    { job: jobs.triton, ...triton, portName: "metrics" },
    { job: jobs.tritonReady, ...triton, portName: "http", path: "/v2/health/ready" },
    { job: jobs.load, namespace: pods.loadNamespace, app: pods.loadApp, portName: "http" },
  ];
}
