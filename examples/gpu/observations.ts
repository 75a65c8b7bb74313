/** What the trials of a run said, without the trials: small enough to keep, and all that identification of the server needs. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { originalArtefact } from "../../model-repo/catalogue";
import type { Variant } from "../../model-repo/variant";
import { observationOf, type Observation } from "../../tuning/identify/observation";
import { readPointLog } from "../../tuning/results/point-log";
import type { TrialSpec } from "../../tuning/trial";
import type { GridVariant } from "./grids";
import { placesIn } from "./places";

const fileName = "observations.json";

/** An observation with where it comes from; of the variant what the server was told. */
export interface RecordedObservation extends Omit<Observation, "variant"> {
  /** Part of measure.sh. */
  readonly part: string;
  readonly purpose: TrialSpec["purpose"];
  readonly variant: Omit<GridVariant, "preferredBatchSizes">;
}

/** Writes observations.json from the valid trials of all parts in a folder that have a points.jsonl; returns how many trials there were. */
export function writeObservations(folder: string): number {
  const parts = placesIn(folder).flatMap((place) =>
    readdirSync(place)
      .filter((part) => existsSync(join(place, part, "points.jsonl")))
      .sort()
      .map((part) => ({ part, log: join(place, part, "points.jsonl") })),
  );
  const recorded = parts.flatMap(({ part, log }) =>
    readPointLog(log)
      .records.filter(({ result }) => result.load.valid)
      .flatMap(({ spec, result }) => {
        const seen = observationOf(spec, result);
        if (seen === null) return [];
        const { name, artefact, maxBatchSize, instanceCount, queueDelayUs } = spec.variant;
        const variant = { name, model: artefact.name, maxBatchSize, instanceCount, queueDelayUs };
        return [{ part: part.replace(/-\d+$/, ""), purpose: spec.purpose, ...seen, variant }];
      }),
  );
  const rounded = (_: string, value: unknown): unknown =>
    typeof value === "number" ? Number(value.toPrecision(6)) : value;
  const lines = recorded.map((one) => `  ${JSON.stringify(one, rounded)}`);
  writeFileSync(join(folder, fileName), `[\n${lines.join(",\n")}\n]\n`);
  return recorded.length;
}

/** @throws Error when the folder has none */
export function readObservations(folder: string): RecordedObservation[] {
  return JSON.parse(readFileSync(join(folder, fileName), "utf8")) as RecordedObservation[];
}

/** The variant that an entry asks for, of a model that takes UINT8 pixels. */
export function asVariant({ model, ...settings }: GridVariant): Variant {
  const { input, ...artefact } = originalArtefact;
  return {
    ...settings,
    artefact: { ...artefact, name: model, input: { ...input, type: "UINT8" as const } },
    published: null,
  };
}

/** As the identification of a server takes it. */
export function asObservation({
  part: _part,
  purpose: _purpose,
  variant,
  ...seen
}: RecordedObservation): Observation {
  return { ...seen, variant: asVariant({ ...variant, preferredBatchSizes: [] }) };
}
