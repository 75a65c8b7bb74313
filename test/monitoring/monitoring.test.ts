/** Prometheus and its rules as data: metrics that exist, windows that are long enough, alerts that say what to do. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { burnThreshold } from "../../monitoring/alert-rules";
import { adapterRules, serverRateMetric } from "../../monitoring/autoscaling";
import { prometheusConfig } from "../../monitoring/prometheus-config";
import { rateWindowS } from "../../monitoring/queries";
import { promDuration, type AlertRule, type RulesInput } from "../../monitoring/rule-types";
import { ruleGroups } from "../../monitoring/rules";
import { jobs, scrapeTargets } from "../../monitoring/scrape-jobs";
import { diskSizeGi, sampleBytes, sampleShare } from "../../monitoring/storage";
import { knownMetrics, metricNames } from "./metric-names";

const rulesInput: RulesInput = {
  scrapeIntervalS: 5,
  sloPercentile: 95,
  sloBoundMs: 100,
  servers: 2,
  loadWorkers: 3,
};
const rules = (input: RulesInput = rulesInput) => ruleGroups(input).flatMap((group) => group.rules);
const alerts = (input?: RulesInput) => rules(input).filter((rule): rule is AlertRule => "alert" in rule);
const alertNamed = (name: string, input?: RulesInput) => alerts(input).find(({ alert }) => alert === name);

it.each([1, 5, 10, 60])("rates over readings every %i s span at least four of them", (scrapeIntervalS) => {
  expect(rateWindowS(scrapeIntervalS)).toBeGreaterThanOrEqual(4 * scrapeIntervalS);
});

it.each([
  [0, "0ms"],
  [0.6, "600ms"],
  [20, "20s"],
  [90, "90s"],
  [300, "5m"],
  [21_600, "6h"],
])("%d s are %s to Prometheus", (seconds, text) => {
  expect(promDuration(seconds)).toBe(text);
});

// triton-inference-server/server#6247, #6047: a rule or autoscaler that asks for a metric which never comes.
describe("every metric that is asked for is in the list", () => {
  it.each([...new Set(rules().map(({ expr }) => expr))])("%s", (expr) => {
    const names = metricNames(expr);
    expect(names.length > 0 || expr === "vector(2)").toBe(true);
    expect(names.filter((name) => !knownMetrics.has(name))).toEqual([]);
  });

  it("and the autoscaler's is made of one of them", () => {
    const { rules: adapter } = adapterRules(20) as {
      rules: [{ seriesQuery: string; metricsQuery: string; name: { as: string } }];
    };
    expect(knownMetrics.has(metricNames(adapter[0].seriesQuery)[0] ?? "")).toBe(true);
    expect(adapter[0].name.as).toBe(serverRateMetric);
    expect(adapter[0].metricsQuery).toContain("[20s]");
  });
});

describe("Prometheus", () => {
  const pods = {
    tritonNamespace: "triton",
    tritonApp: "triton",
    loadNamespace: "load",
    loadApp: "controller",
  };
  const config = prometheusConfig({
    scrapeIntervalS: 5,
    targets: scrapeTargets(pods),
    ruleFiles: ["rules.yml"],
  });

  it("finds every pod by label and port, not one address for all", () => {
    expect(config.scrape_configs.map(({ job_name, metrics_path }) => [job_name, metrics_path])).toEqual([
      [jobs.triton, "/metrics"],
      [jobs.tritonReady, "/v2/health/ready"],
      [jobs.load, "/metrics"],
    ]);
    expect(config.scrape_configs[0]).toMatchObject({
      kubernetes_sd_configs: [{ role: "pod", namespaces: { names: ["triton"] } }],
      relabel_configs: expect.arrayContaining([
        { source_labels: ["__meta_kubernetes_pod_label_app"], regex: "triton", action: "keep" },
        { source_labels: ["__meta_kubernetes_pod_container_port_name"], regex: "metrics", action: "keep" },
        { source_labels: ["__meta_kubernetes_pod_name"], target_label: "pod" },
      ]) as unknown,
    });
  });

  it.each([1, 2, 5, 60])("answers within the interval of %i s, or gives up", (scrapeIntervalS) => {
    const { global } = prometheusConfig({ scrapeIntervalS, targets: [], ruleFiles: [] });
    expect(Number.parseInt(global.scrape_timeout)).toBeLessThanOrEqual(scrapeIntervalS);
    expect(Number.parseInt(global.scrape_timeout)).toBeGreaterThan(0);
  });
});

describe("rules", () => {
  it("have unique names", () => {
    const names = rules().map((rule) => ("alert" in rule ? rule.alert : rule.record));
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(alerts())(
    "$alert says what is wrong and what to do, and is in the runbook",
    ({ alert, annotations }) => {
      expect(annotations.summary.length).toBeGreaterThan(15);
      expect(annotations.action.length).toBeGreaterThan(15);
      const [file = "", anchor] = annotations.runbook_url.split("#");
      const runbook = readFileSync(join(__dirname, "../..", file), "utf8");
      expect(anchor).toBe(alert.toLowerCase());
      expect(runbook).toMatch(new RegExp(`^#+ ${alert}$`, "m"));
    },
  );

  it("count servers and workers only where their number is fixed and not zero", () => {
    for (const servers of [null, 0])
      expect(alertNamed("TritonServersMissing", { ...rulesInput, servers })).toBeUndefined();
    expect(alertNamed("TritonServersMissing")?.expr).toContain("< 2");
    expect(alertNamed("LoadWorkersMissing", { ...rulesInput, loadWorkers: 0 })).toBeUndefined();
    expect(alertNamed("LoadWorkersMissing")?.expr).toContain("< 3");
  });

  it("shorten the waiting with the time scale, but never read over less than four scrapes", () => {
    const short = { ...rulesInput, timeScale: 0.01 };
    expect(alertNamed("TritonGpuSaturated", short)?.for).toBe("9s");
    expect(alertNamed("SloBurnFast", short)?.expr).toContain("[36s]");
    expect(alertNamed("SloBurnFast", short)?.expr).toContain("[20s]");
    expect(alertNamed("SloBurnFast")?.expr).toContain("[1h]");
    expect(alertNamed("SloBurnFast")?.expr).toContain("[5m]");
  });

  it("burn a budget at a share of requests that can be reached, above the budget", () => {
    expect(burnThreshold(14.4, 99)).toBe(0.144);
    expect(burnThreshold(6, 95)).toBe(0.3);
    fc.assert(
      fc.property(fc.integer({ min: 50, max: 99 }), fc.constantFrom(6, 14.4), (percentile, rate) => {
        const threshold = burnThreshold(rate, percentile);
        expect(threshold).toBeGreaterThan((100 - percentile) / 100);
        expect(threshold).toBeLessThan(1);
      }),
    );
  });
});

describe("the disk of Prometheus", () => {
  const inputs = fc.record({
    scrapeIntervalS: fc.integer({ min: 1, max: 60 }),
    retentionDays: fc.integer({ min: 1, max: 400 }),
    servers: fc.integer({ min: 1, max: 100 }),
    models: fc.integer({ min: 1, max: 30 }),
  });

  it("holds the samples of the retention in its share, and is not much larger", () => {
    fc.assert(
      fc.property(inputs, (input) => {
        const room = diskSizeGi(input) * 2 ** 30 * sampleShare;
        expect(room).toBeGreaterThanOrEqual(sampleBytes(input));
        expect(diskSizeGi(input)).toBeLessThanOrEqual(sampleBytes(input) / sampleShare / 2 ** 30 + 20);
      }),
    );
  });

  it("is 20 GiB for a small stack, and grows with retention, servers and readings", () => {
    const small = { scrapeIntervalS: 5, retentionDays: 15, servers: 1, models: 7 };
    expect(diskSizeGi(small)).toBe(20);
    const large = { scrapeIntervalS: 1, retentionDays: 60, servers: 10, models: 7 };
    // 10 x (7 x 25 + 40) + 500 series, 60 days of one reading a second, 2 bytes each, 80 % of the disk: 30.8 GB.
    expect(sampleBytes(large)).toBe(2650 * 60 * 86_400 * 2);
    expect(diskSizeGi(large)).toBe(40);
  });
});
