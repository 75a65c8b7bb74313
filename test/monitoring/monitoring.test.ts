/** Prometheus and Grafana as data: metrics that exist, windows that are long enough, panels that are complete. */
import { describe, expect, it } from "vitest";
import { adapterRules, serverRateMetric } from "../../monitoring/autoscaling";
import { dataSources, loadDashboard, prometheusUid, servingDashboard } from "../../monitoring/dashboards";
import { loadMetrics, tritonMetrics } from "../../monitoring/metrics";
import { prometheusConfig } from "../../monitoring/prometheus-config";
import { rateWindowS, tritonQueries } from "../../monitoring/queries";
import { recorded, ruleGroups, type AlertRule, type RulesInput } from "../../monitoring/rules";

const rulesInput: RulesInput = { scrapeIntervalS: 5, sloPercentile: 95, sloBoundMs: 100, servers: 2 };
const rules = (input: RulesInput = rulesInput) => ruleGroups(input).flatMap((group) => group.rules);
const alerts = (input?: RulesInput) => rules(input).filter((rule): rule is AlertRule => "alert" in rule);

/** Names of metrics in an expression: words that are neither functions, labels, nor keywords. */
function metricNames(expr: string): string[] {
  const bare = expr
    .replace(/\{[^}]*\}/g, "")
    .replace(/\[[^\]]*\]/g, "")
    .replace(/\b(by|on|without) \([^)]*\)/g, "");
  return [...bare.matchAll(/[a-z][a-z0-9_:]*(?=\s*(?:[^a-z0-9_:(]|$))/g)]
    .map(([name]) => name)
    .filter((name) => !["and", "or", "by", "on", "sum", "avg", "count", "max", "min"].includes(name));
}

const known = new Set<string>([
  ...Object.values(tritonMetrics),
  ...Object.values(recorded),
  ...Object.values(loadMetrics).flatMap((name) => [name, `${name}_bucket`, `${name}_count`, `${name}_sum`]),
  "up",
]);

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly datasource: { readonly uid: string };
    readonly fieldConfig: { readonly defaults: { readonly unit: string } };
    readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
    readonly targets: readonly {
      readonly refId: string;
      readonly expr: string;
      readonly legendFormat: string;
    }[];
  }[];
}
const dashboards = [servingDashboard, loadDashboard].map(
  (write) =>
    JSON.parse(
      write({ windowS: 20, sloPercentile: 95, sloBoundMs: 100, dataSourceUid: prometheusUid }),
    ) as Dashboard,
);

it("knows a metric's name from a function's", () => {
  expect(metricNames('sum by (model) (rate(nv_inference_count{a="b"}[20s])) / clamp_min(up, 1)')).toEqual([
    "nv_inference_count",
    "up",
  ]);
});

it.each([1, 5, 10, 60])("rates over readings every %i s span at least four of them", (scrapeIntervalS) => {
  expect(rateWindowS(scrapeIntervalS)).toBeGreaterThanOrEqual(4 * scrapeIntervalS);
});

// triton-inference-server/server#6247, #6047: a dashboard or autoscaler that asks for a metric which never comes.
describe("every metric that is asked for is in the list", () => {
  const expressions = [
    ...rules().map(({ expr }) => expr),
    ...Object.values<string>({ ...tritonQueries(20) }),
    ...dashboards.flatMap(({ panels }) => panels.flatMap((panel) => panel.targets.map(({ expr }) => expr))),
  ];
  it.each([...new Set(expressions)])("%s", (expr) => {
    const names = metricNames(expr);
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !known.has(name))).toEqual([]);
  });

  it("and the autoscaler's is made of one of them", () => {
    const { rules: adapter } = adapterRules(20) as {
      rules: [{ seriesQuery: string; metricsQuery: string; name: { as: string } }];
    };
    expect(known.has(metricNames(adapter[0].seriesQuery)[0] ?? "")).toBe(true);
    expect(adapter[0].name.as).toBe(serverRateMetric);
    expect(adapter[0].metricsQuery).toContain("[20s]");
  });
});

describe("Prometheus", () => {
  const config = prometheusConfig({
    scrapeIntervalS: 5,
    targets: [{ job: "triton", namespace: "triton", app: "triton", portName: "metrics" }],
    ruleFiles: ["/etc/prometheus/rules.yml"],
  });

  it("finds every pod by label and port, not one address for all", () => {
    expect(config.scrape_configs).toEqual([
      expect.objectContaining({
        job_name: "triton",
        kubernetes_sd_configs: [{ role: "pod", namespaces: { names: ["triton"] } }],
        relabel_configs: expect.arrayContaining([
          { source_labels: ["__meta_kubernetes_pod_label_app"], regex: "triton", action: "keep" },
          { source_labels: ["__meta_kubernetes_pod_container_port_name"], regex: "metrics", action: "keep" },
          { source_labels: ["__meta_kubernetes_pod_name"], target_label: "pod" },
        ]) as unknown,
      }),
    ]);
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

  it.each(alerts())("$alert says what is wrong and what to do", ({ annotations, labels }) => {
    expect(annotations.summary.length).toBeGreaterThan(15);
    expect(annotations.action.length).toBeGreaterThan(15);
    expect(["page", "ticket"]).toContain(labels.severity);
  });

  it("count servers only where their number is fixed and not zero", () => {
    const names = (servers: number | null) => alerts({ ...rulesInput, servers }).map(({ alert }) => alert);
    expect(names(2)).toContain("TritonServersMissing");
    expect(names(null)).not.toContain("TritonServersMissing");
    expect(names(0)).not.toContain("TritonServersMissing");
  });

  it("judge the SLO at its own bound", () => {
    const missed = alerts({ ...rulesInput, sloBoundMs: 250, sloPercentile: 99 }).find(
      ({ alert }) => alert === "LoadSloMissed",
    );
    expect(missed?.expr).toContain('le="0.25"');
    expect(missed?.expr).toContain("> 0.01");
  });
});

describe.each(dashboards)("dashboard $uid", ({ panels }) => {
  it("has panels with ids, units, legends and places of their own", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = panels.map(({ gridPos }) => `${gridPos.x},${gridPos.y}`);
    expect(new Set(places).size).toBe(panels.length);
    for (const panel of panels) {
      expect(panel.fieldConfig.defaults.unit).not.toBe("");
      expect(panel.datasource.uid).toBe(prometheusUid);
      expect(new Set(panel.targets.map(({ refId }) => refId)).size).toBe(panel.targets.length);
      for (const target of panel.targets) expect(target.legendFormat).not.toBe("");
    }
  });

  it("draws the bound of the objective", () => {
    const slo = panels.find(({ title }) => title.includes("95th percentile"));
    expect(JSON.stringify(slo?.fieldConfig)).toContain('"value":100');
  });

  it("reads the provisioned data source", () => {
    const { datasources } = JSON.parse(dataSources("http://p:9090", 5)) as {
      datasources: [Record<string, unknown>];
    };
    expect(datasources[0]).toMatchObject({ uid: prometheusUid, url: "http://p:9090", editable: false });
  });
});
