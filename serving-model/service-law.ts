/** Service time of one batch on one GPU node: the law behind the simulated T4 and behind every prediction. All in model time. */
export interface ServiceLaw {
  /** Host phase (copies into the backend), per image, milliseconds; instances do it in parallel. */
  readonly hostMsPerImage: number;
  /** Host phase per batch, milliseconds: what a backend does around every execution (Python). Default 0. */
  readonly hostMsPerBatch?: number;
  /** GPU phase per batch and per image, milliseconds; one at a time per GPU, first come first served. */
  readonly gpuMsPerBatch: number;
  readonly gpuMsPerImage: number;
  /** Requests a second that the node's link passes at this payload; Infinity when it is no limit. */
  readonly ingressRequestsPerS: number;
}

/** @throws RangeError naming the first field that is not a usable time or rate. */
export function checkLaw(law: ServiceLaw): void {
  checkTime("hostMsPerBatch", law.hostMsPerBatch ?? 0);
  for (const key of ["hostMsPerImage", "gpuMsPerBatch", "gpuMsPerImage"] as const) {
    checkTime(key, law[key]);
  }
  if (!(law.ingressRequestsPerS > 0)) {
    throw new RangeError(
      `law.ingressRequestsPerS is ${law.ingressRequestsPerS}; it must be > 0 (Infinity for no limit).`,
    );
  }
}

function checkTime(key: string, ms: number): void {
  if (!(ms >= 0) || ms === Infinity) {
    throw new RangeError(`law.${key} is ${ms}; it must be a finite number of milliseconds >= 0.`);
  }
}

/** Host phase of one batch, milliseconds. */
export function hostMsOf(
  { hostMsPerBatch = 0, hostMsPerImage }: Omit<ServiceLaw, "ingressRequestsPerS">,
  images: number,
): number {
  return hostMsPerBatch + hostMsPerImage * images;
}

/** Images a second that the GPU passes in batches of this size when it does nothing but infer: no host phase, no link. */
export function gpuImagesPerS({ gpuMsPerBatch, gpuMsPerImage }: ServiceLaw, images: number): number {
  return (1000 * images) / (gpuMsPerBatch + gpuMsPerImage * images);
}

/** The law with its host phase scaled by a factor. */
export function withHostPhase(law: ServiceLaw, factor: number): ServiceLaw {
  const { hostMsPerBatch = 0, hostMsPerImage } = law;
  return { ...law, hostMsPerBatch: hostMsPerBatch * factor, hostMsPerImage: hostMsPerImage * factor };
}
