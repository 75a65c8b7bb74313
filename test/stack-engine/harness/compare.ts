/**
 * What the engine and the providers would do with a registration, given the one of the run before: nothing, an update or
 * a replacement. The comparison of inputs is exact; which changes replace comes from the table in `replace-rules.ts`.
 */
import { Asset, Secret, Unknown, ResourceReference, isMap, joinPath, splitPath } from "./property-value";
import type { PropertyMap, PropertyValue } from "./property-value";
import { providerUrn, type Recording, type Registration } from "./recording";
import type { Asked } from "./registration";
import { replacePatterns, type ProviderInputs } from "./replace-rules";

export type Operation = "create" | "same" | "update" | "replace" | "delete";

export interface Step {
  readonly operation: Operation;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** Input paths that differ, e.g. `nodeConfig.machineType`. */
  readonly changed: readonly string[];
  /** The paths (or `provider`) that force the replacement. */
  readonly replacedBy: readonly string[];
}

/** A resource of an earlier run, as far as a comparison needs it. */
export type Prior = Pick<Registration, "inputs" | "provider">;

/**
 * Compares one registration with its predecessor.
 *
 * @param replacedProvider true when the provider that the resource uses is itself replaced
 * @param provider inputs of the provider that manages the resource
 */
export function compare(
  prior: Prior | undefined,
  next: Asked,
  replacedProvider: boolean,
  provider: ProviderInputs,
): Step {
  const about = { urn: next.urn, type: next.type, name: next.name };
  if (prior === undefined) return { ...about, operation: "create", changed: [], replacedBy: [] };
  const changed = changedPaths(prior.inputs, next.inputs).filter(
    (path) => !matchesAny(path, next.ignoreChanges),
  );
  if (!next.custom) return { ...about, operation: "same", changed, replacedBy: [] };
  const patterns = [...replacePatterns(prior, next, provider), ...next.replaceOnChanges];
  const replacedBy = changed.filter((path) => matchesAny(path, patterns));
  if (replacedProvider || providerUrn(prior.provider) !== providerUrn(next.provider))
    replacedBy.push("provider");
  const operation = replacedBy.length > 0 ? "replace" : changed.length > 0 ? "update" : "same";
  return { ...about, operation, changed, replacedBy };
}

/**
 * All steps of an up that turns the first run's stack into the second's, without those that do nothing.
 * Replacement of a provider replaces all that it manages; resources that are gone are deleted.
 */
export function diff(first: Recording, second: Recording): Step[] {
  const replaced = new Set<string>();
  const steps: Step[] = [];
  for (const next of second.all) {
    const provider = providerUrn(next.provider);
    const step = compare(first.get(next.urn), next, replaced.has(provider), second.get(provider)?.inputs);
    if (step.operation === "replace") replaced.add(next.urn);
    if (step.operation !== "same") steps.push(step);
  }
  for (const prior of first.all) {
    if (second.get(prior.urn) !== undefined) continue;
    steps.push({
      operation: "delete",
      urn: prior.urn,
      type: prior.type,
      name: prior.name,
      changed: [],
      replacedBy: [],
    });
  }
  return steps;
}

/** `update kubernetes:apps/v1:Deployment triton (spec.template.spec.containers[0].args)`, one step a line, sorted. */
export function summary(steps: readonly Step[]): string[] {
  return steps
    .map(({ operation, type, name, changed, replacedBy }) => {
      const paths = operation === "replace" ? replacedBy : operation === "update" ? changed : [];
      return `${operation} ${type} ${name}${paths.length > 0 ? ` (${paths.join(", ")})` : ""}`;
    })
    .sort();
}

/** Paths at which two maps differ. An unknown differs from everything but an unknown. */
export function changedPaths(before: PropertyMap, after: PropertyMap): string[] {
  const paths: string[] = [];
  collect(before, after, "", paths);
  return paths;
}

function collect(
  before: PropertyValue | undefined,
  after: PropertyValue | undefined,
  path: string,
  paths: string[],
): void {
  if (before instanceof Secret) return collect(before.value, after, path, paths);
  if (after instanceof Secret) return collect(before, after.value, path, paths);
  if (isMap(before) && isMap(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      collect(before[key], after[key], joinPath(path, key), paths);
    }
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let index = 0; index < Math.max(before.length, after.length); index++) {
      collect(before[index], after[index], joinPath(path, index), paths);
    }
  } else if (!equalLeaves(before, after)) {
    paths.push(path);
  }
}

function equalLeaves(before: PropertyValue | undefined, after: PropertyValue | undefined): boolean {
  if (before instanceof Unknown || after instanceof Unknown)
    return before instanceof Unknown && after instanceof Unknown;
  if (before instanceof Asset && after instanceof Asset) return before.hash === after.hash;
  if (before instanceof ResourceReference && after instanceof ResourceReference)
    return before.urn === after.urn;
  return (
    before === after || (before === undefined && after === null) || (before === null && after === undefined)
  );
}

/** True when the path is one of the patterns or lies below one; `[*]` and `*` stand for any one step. */
export function matchesAny(path: string, patterns: readonly string[]): boolean {
  const steps = splitPath(path);
  return patterns.some((pattern) => {
    const wanted = splitPath(pattern);
    // A whole parent that appears or disappears takes what lies below it along.
    const length = Math.min(wanted.length, steps.length);
    return (
      length > 0 && wanted.slice(0, length).every((step, index) => step === "*" || step === steps[index])
    );
  });
}
