import { exceptionFor } from "./exceptions";
import type { Resource, Rule } from "./rule";
import { dataRules } from "./rules/data-rules";
import { identityRules } from "./rules/identity-rules";
import { networkRules } from "./rules/network-rules";
import { podRules } from "./rules/pod-rules";

/** Every rule of the pack. */
export const allRules: readonly Rule[] = [...networkRules, ...identityRules, ...dataRules, ...podRules];

/** Violations of one rule by one resource that no exception accepts. */
export function violationsOf(rule: Rule, resource: Resource): string[] {
  if (!rule.appliesTo(resource.type)) return [];
  return rule
    .violations(resource)
    .filter((violation) => exceptionFor(rule.name, resource, violation) === undefined);
}
