/** What is known about the artefacts' own speed on servers that this program did not start. Pure. */
import type { ArtefactSpeeds } from "../model-repo/conversion-manifest";
import { measuredSpeedAt, type StandAloneSpeed } from "../model-repo/stand-alone-speed";
import type { Variant } from "../model-repo/variant";

export interface KnownSpeeds {
  /** Hash of the files of a variant's artefact; null: not known. */
  readonly filesHashOf: (variant: Variant) => string | null;
  readonly standAloneOf: (variant: Variant) => StandAloneSpeed | null;
  /** Why some are not known, in sentences. */
  readonly notes: readonly string[];
}

/** By the name of a variant's artefact, or by its own: a model on a server may have either. */
export function speedsOf(
  variant: Pick<Variant, "name" | "artefact">,
  all: readonly ArtefactSpeeds[],
): ArtefactSpeeds | null {
  const named = (name: string) => all.find(({ artefact }) => artefact === name) ?? null;
  return named(variant.artefact.name) ?? named(variant.name);
}

export function knownSpeeds(all: readonly ArtefactSpeeds[], notes: readonly string[] = []): KnownSpeeds {
  return {
    filesHashOf: (variant) => speedsOf(variant, all)?.filesHash ?? null,
    standAloneOf: (variant) => {
      const found = speedsOf(variant, all);
      return found && measuredSpeedAt(found.speeds, variant.maxBatchSize, found.on);
    },
    notes,
  };
}
