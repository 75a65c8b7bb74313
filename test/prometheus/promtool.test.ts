/** The deployed files and rules in the eyes of promtool, of the version that is deployed. */
import { describe, expect, it } from "vitest";
import { ruleGroups } from "../../monitoring/rules";
import type { AlertRule, RulesInput } from "../../monitoring/rule-types";
import { parseConfig } from "../../stack/config";
import { prometheusFiles } from "../../stack/sections/monitoring";
import { promtool } from "./harness/promtool";
import { alertCases } from "./alert-cases";

const files = (raw: Readonly<Record<string, string>>) =>
  prometheusFiles(parseConfig({ project: "my-project", ...raw }));

describe.each([
  ["by default", {}],
  [
    "of a large stack",
    { replicas: "3", gpuMaxNodes: "3", scrapeIntervalS: "15", sloBoundMs: "1000", sloPercentile: "99" },
  ],
  [
    "with an autoscaler",
    { autoscale: "true", gpuMaxNodes: "2", autoscaleRatePerS: "500", loadGenerator: "false" },
  ],
  ["with a lax objective, asleep", { asleep: "true", sloPercentile: "50", scrapeIntervalS: "1" }],
])("the files %s", (_name, raw) => {
  it("are a right configuration with rules that promtool has nothing against", () => {
    const { status, text } = promtool(
      files(raw),
      "check",
      "config",
      "--lint=all",
      "--lint-fatal",
      "prometheus.yml",
    );
    expect(text).toContain("SUCCESS: prometheus.yml is valid prometheus config file syntax");
    expect(text).toMatch(/SUCCESS: \d+ rules found/);
    expect(status, text).toBe(0);
  });
});

it("promtool refuses a wrong rule, so its word is worth something", () => {
  const rules = JSON.stringify({ groups: [{ name: "g", rules: [{ record: "a", expr: "sum(" }] }] });
  expect(promtool({ "rules.yml": rules }, "check", "rules", "rules.yml").status).not.toBe(0);
});

/** As deployed: two servers and two workers that are read every five seconds. */
const input: RulesInput = {
  scrapeIntervalS: 5,
  sloPercentile: 95,
  sloBoundMs: 100,
  servers: 2,
  loadWorkers: 2,
};
const groups = ruleGroups(input);
const alerts = groups
  .flatMap(({ rules }) => rules)
  .filter((rule): rule is AlertRule => "alert" in rule)
  .map((rule) => [rule.alert, rule] as const);

it("there is a case for every alert", () => {
  expect(Object.keys(alertCases).sort()).toEqual(alerts.map(([name]) => name).sort());
});

function filled(text: string, labels: Readonly<Record<string, string>>): string {
  return text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_whole, label: string) => labels[label] ?? "");
}

describe.each(alerts)("%s with its real windows", (name, rule) => {
  const { every = "15s", series, labels, quietAt, firesAt, overAt } = alertCases[name]!;
  const expected = {
    exp_labels: { severity: rule.labels.severity, ...labels },
    exp_annotations: Object.fromEntries(
      Object.entries(rule.annotations).map(([key, text]) => [key, filled(text, labels)]),
    ),
  };

  it("waits, fires and is over at the right times", () => {
    const tests = {
      rule_files: ["rules.yml"],
      evaluation_interval: every,
      fuzzy_compare: true,
      tests: [
        {
          interval: every,
          input_series: Object.entries(series).map(([key, values]) => ({ series: key, values })),
          alert_rule_test: [
            { eval_time: quietAt, alertname: name, exp_alerts: [] },
            { eval_time: firesAt, alertname: name, exp_alerts: [expected] },
            { eval_time: overAt, alertname: name, exp_alerts: [] },
          ],
        },
      ],
    };
    const { status, text } = promtool(
      { "rules.yml": JSON.stringify({ groups }), "tests.yml": JSON.stringify(tests) },
      "test",
      "rules",
      "tests.yml",
    );
    expect(status, text).toBe(0);
  });
});
