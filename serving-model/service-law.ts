/** Service time of one batch on one GPU node: the law behind the simulated T4 and behind every prediction. All in model time. */
export interface ServiceLaw {
  /** Host phase (copies into the backend), per image, milliseconds; instances do it in parallel. */
  readonly hostMsPerImage: number;
  /** GPU phase per batch and per image, milliseconds; one at a time per GPU, first come first served. */
  readonly gpuMsPerBatch: number;
  readonly gpuMsPerImage: number;
  /** Requests a second that the node's link passes at this payload; Infinity when it is no limit. */
  readonly ingressRequestsPerS: number;
}

/** @throws RangeError naming the first field that is not a usable time or rate. */
export function checkLaw(law: ServiceLaw): void {
  for (const key of ["hostMsPerImage", "gpuMsPerBatch", "gpuMsPerImage"] as const) {
    if (!(law[key] >= 0) || law[key] === Infinity) {
      throw new RangeError(`law.${key} is ${law[key]}; it must be a finite number of milliseconds >= 0.`);
    }
  }
  if (!(law.ingressRequestsPerS > 0)) {
    throw new RangeError(
      `law.ingressRequestsPerS is ${law.ingressRequestsPerS}; it must be > 0 (Infinity for no limit).`,
    );
  }
}
