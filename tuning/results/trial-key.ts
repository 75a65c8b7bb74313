/**
 * The key under which a finished trial is found again: SHA-256 of the canonical JSON of everything that decides what is
 * measured.
 *
 * In the key: variant (settings, artefact), hash of the model files, hash of the images, identity of the server, replicas,
 * request settings, load shape, seed, window, SLO bound (it splits the exact counters).
 * Not in the key, since the measurement does not depend on it: the SLO's quantile, the trial's purpose, the variant's published
 * figure, and the time dilation (results are in model time; the factor is recorded beside each point).
 */
import type { TrialSpec } from "../trial";
import { canonicalJson, sha256Hex } from "./canonical";

/** Layout of the hashed object; raised when its meaning changes, so old points are not taken for new ones. */
const keyVersion = 1;

/** What all trials of one variant in a sweep have in common beside the variant itself. */
export interface MeasuredSystem {
  /** Identity of the server under test: whatever decides its speed. See `OpenTarget.identity`. */
  readonly serverIdentity: string;
  /** Ready server replicas that the load is spread over. */
  readonly replicas: number;
  /** Hash of the variant's model files; null when the server does not let us see them. */
  readonly modelHash: string | null;
  /** `hashOfImages()` of the payload images. */
  readonly imagesHash: string;
  /** Settings of the load generator that act on the result and are not in the trial's spec: transport, deadline ... */
  readonly loadGenerator: Readonly<Record<string, string | number | boolean | null>>;
}

/** Key of one trial, 64 hexadecimal digits. @throws TypeError when a figure is not finite. */
export function trialKey(spec: TrialSpec, system: MeasuredSystem): string {
  const { published: _published, ...variant } = spec.variant;
  return sha256Hex(
    canonicalJson({
      keyVersion,
      variant,
      ...system,
      shape: spec.shape,
      seed: spec.seed,
      warmupS: spec.warmupS,
      measureS: spec.measureS,
      sloBoundMs: spec.slo.boundMs,
    }),
  );
}
