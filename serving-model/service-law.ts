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
