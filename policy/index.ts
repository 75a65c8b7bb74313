/**
 * Policy pack: `pulumi preview --policy-pack policy`. The rules are plain functions in rules/; this file only hands them to
 * Pulumi. All are mandatory: a violation stops the update.
 */
import { PolicyPack, type ResourceValidationPolicy } from "@pulumi/policy";
import { allRules, violationsOf } from "./all-rules";
import type { Rule } from "./rule";

function toPolicy(rule: Rule): ResourceValidationPolicy {
  return {
    name: rule.name,
    description: rule.description,
    remediationSteps: rule.fix,
    enforcementLevel: "mandatory",
    validateResource: ({ type, name, props, opts }, reportViolation) => {
      const resource = { type, name, properties: props, protect: opts.protect };
      for (const violation of violationsOf(rule, resource)) reportViolation(`${violation}. ${rule.fix}`);
    },
  };
}

new PolicyPack("triton-slo", { policies: allRules.map(toPolicy) });
