import { loadAlerts, serverAlerts, sloAlerts } from "./alert-rules";
import { recordingRules } from "./recording-rules";
import type { RuleGroup, RulesInput } from "./rule-types";

/** Rules file of the stack: what the panels show, recorded once, and what somebody should look at. */
export function ruleGroups(input: RulesInput): RuleGroup[] {
  return [
    { name: "recording", rules: recordingRules(input) },
    { name: "server-alerts", rules: serverAlerts(input) },
    { name: "slo-alerts", rules: sloAlerts(input) },
    { name: "load-alerts", rules: loadAlerts(input) },
  ];
}
