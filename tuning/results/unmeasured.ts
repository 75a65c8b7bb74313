/** A rate that nobody could measure is another answer than "none": nothing is said about the server. Pure. */

/** What decides about it: a variant's trials, in the outcome's or the result's words. */
interface Measured {
  readonly sloRate: object | null;
  readonly trials: readonly { readonly valid: boolean; readonly purpose: string }[];
}

/** True where the rate is missing because no trial near the limit was valid; probes only tell the service times. */
export function isUnmeasured({ sloRate, trials }: Measured): boolean {
  return sloRate === null && !trials.some(({ valid, purpose }) => valid && purpose !== "probe");
}
