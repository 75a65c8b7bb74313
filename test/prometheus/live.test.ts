/**
 * The deployed rules and dashboards on a real Prometheus that finds and reads real servers: every alert fires and is over when provoked,
 * and every query of every panel and rule gives what the trial itself measured.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { adapterRules } from "../../monitoring/autoscaling";
import { dashboards, type DashboardInput } from "../../monitoring/dashboards";
import { prometheusUid } from "../../monitoring/data-sources";
import { loadMetrics, tritonMetrics } from "../../monitoring/metrics";
import { recordingRules } from "../../monitoring/recording-rules";
import type { AlertRule } from "../../monitoring/rule-types";
import { ruleGroups } from "../../monitoring/rules";
import { parsePrometheusText } from "../../tuning/prometheus-text";
import { checks, type Check, type Expectation, type Measured } from "./panel-checks";
import { drawDashboards } from "./pictures/draw";
import { provokingModels } from "./harness/models";
import { rulesInput, scrapeIntervalS, slo, World, type TrialChange } from "./harness/world";

const dashboardInput: DashboardInput = {
  sloPercentile: slo.percentile,
  sloBoundMs: slo.boundMs,
  scrapeIntervalS,
  dataSourceUid: prometheusUid,
  serverUsdPerH: 0.6,
};
const built = dashboards(dashboardInput);

let world: World;
/** Alerts that were seen firing, by name. */
const fired = new Set<string>();

beforeAll(async () => {
  world = await World.start(provokingModels);
}, 180_000);
afterAll(async () => {
  await world?.stop();
}, 60_000);

async function fires(alertname: string, labels?: Readonly<Record<string, string>>): Promise<void> {
  const alert = await world.untilFiring(alertname, labels);
  expect(alert.annotations["summary"]).not.toContain("{{");
  expect(alert.annotations["runbook_url"]).toBe(`docs/operations.md#${alertname.toLowerCase()}`);
  fired.add(alertname);
}

/** First query of a panel of the operations dashboard. */
function exprOf(title: string): string {
  const panel = built["operations.json"]!.panels!.find((candidate) => candidate.title === title);
  const [target] = (panel !== undefined && "targets" in panel && panel.targets) || [];
  return (target as { expr?: string } | undefined)?.expr ?? "";
}

const constant = (ratePerS: number): TrialChange["shape"] => ({ kind: "constant", ratePerS });

describe("Prometheus with the deployed configuration", () => {
  it("finds every Triton pod and the load controller by itself, and nothing else", async () => {
    const targets = await world.prometheus.targets();
    const found = targets.map(
      ({ labels }) => `${labels["job"]} ${labels["namespace"]}/${labels["pod"]} on ${labels["node"]}`,
    );
    expect(found.sort()).toEqual([
      "load-generator load/load-controller-1 on node-1",
      "triton triton/triton-local on node-1",
      "triton triton/triton-real on node-1",
      "triton-ready triton/triton-local on node-1",
      "triton-ready triton/triton-real on node-1",
    ]);
  });

  it("names no metric that servers and controller do not answer", async () => {
    const names = async (url: string) =>
      new Set(parsePrometheusText(await (await fetch(url)).text()).map(({ name }) => name));
    const { real, local, load } = world.metricsUrls;
    const [onReal, onLocal, onLoad] = [await names(real), await names(local), await names(load)];
    const isGpu = (name: string) => name.startsWith("nv_gpu_");
    for (const name of Object.values(tritonMetrics)) {
      expect(onLocal, `${name} of local-triton`).toContain(name);
      if (!isGpu(name)) expect(onReal, `${name} of Triton`).toContain(name);
    }
    const histograms: readonly string[] = [loadMetrics.responseSeconds, loadMetrics.latenessSeconds];
    for (const name of Object.values(loadMetrics)) {
      if (name === loadMetrics.measurementRunning) continue;
      const sampled =
        name === loadMetrics.serviceSeconds
          ? `${name}_sum`
          : histograms.includes(name)
            ? `${name}_bucket`
            : name;
      expect(onLoad).toContain(sampled);
    }
  });

  it("evaluates every rule without an error", async () => {
    const rules = await world.prometheus.rules();
    expect(rules).toHaveLength(ruleGroups(rulesInput).flatMap((group) => group.rules).length);
    for (const { name, health, lastError = "" } of rules)
      expect(`${name} ${health} ${lastError}`).toBe(`${name} ok `);
  });
});

describe("alerts", () => {
  it("fire when the GPU is the limit: saturation, a growing queue, a burning budget", async () => {
    const overload = {
      modelName: "slow",
      addresses: [world.addresses.local],
      shape: constant(26),
      measureS: 13,
    };
    const { load } = await world.trial(overload, async () => {
      await fires("TritonQueueGrowing", { model: "slow", severity: "page" });
      // A query's series come in no particular order.
      const series = await world.prometheus.query(exprOf("Waiting requests"));
      const waiting = series.find(({ labels }) => labels["pod"] === "triton-local");
      expect(waiting?.value).toBeGreaterThan(1);
      await fires("SloBurnFast", { severity: "page" });
      await fires("SloBurnSlow", { severity: "ticket" });
      await fires("TritonGpuSaturated", { pod: "triton-local", severity: "ticket" });
    });
    expect(load.total.late / load.total.planned).toBeGreaterThan(0.5);
    await world.untilResolved(["TritonQueueGrowing", "TritonGpuSaturated", "SloBurnFast", "SloBurnSlow"]);
  });

  it("fire when the host is the limit: requests wait while the GPU idles", async () => {
    const overload = {
      modelName: "host",
      addresses: [world.addresses.local],
      shape: constant(26),
      measureS: 13,
    };
    await world.trial(overload, async () => {
      await fires("TritonHostBound", { pod: "triton-local", severity: "ticket" });
    });
    await world.untilResolved(["TritonHostBound"]);
  });

  it("fire when a server fails requests", async () => {
    const strict = {
      modelName: "strict",
      addresses: [world.addresses.real],
      shape: constant(40),
      measureS: 8,
    };
    const { load } = await world.trial(strict, async () => {
      await fires("TritonFailures", { model: "strict", severity: "page" });
    });
    expect(load.errors["UNAVAILABLE"]).toBeGreaterThan(0);
    await world.untilResolved(["TritonFailures"]);
  });

  it("fire when the load generator is late, and its trials cannot be used", async () => {
    const calm = { modelName: "good", shape: constant(40), measureS: 4 };
    for (let round = 0; round < 2; round++) {
      const { load } = await world.trial(calm, async () => {
        await new Promise((resolve) => setTimeout(resolve, 2500));
        await world.signalWorker("SIGSTOP");
        await new Promise((resolve) => setTimeout(resolve, 800));
        await world.signalWorker("SIGCONT");
        if (round === 0) await fires("LoadGeneratorLate", { severity: "ticket" });
      });
      expect(load.invalidReasons.join()).toContain("client-bound");
    }
    await fires("LoadTrialsInvalid", { severity: "ticket" });
    await world.untilResolved(["LoadGeneratorLate", "LoadTrialsInvalid"]);
  });

  it("fire when a load worker is gone", async () => {
    await world.stopWorker();
    await fires("LoadWorkersMissing", { severity: "ticket" });
    await world.startWorker();
    await world.untilResolved(["LoadWorkersMissing"]);
  });

  it("fire when a server is gone, and say which", async () => {
    await world.stopTriton();
    await fires("TritonServersMissing", { severity: "page" });
    await fires("TritonNotReady", { pod: "triton-real", severity: "page" });
    await fires("ScrapeMissing", { pod: "triton-real", job: "triton", severity: "ticket" });
    const firing = await world.prometheus.query(exprOf("Firing alerts"));
    expect(firing.map(({ labels }) => labels["alertname"])).toContain("TritonServersMissing");
    await world.startTriton();
    await world.untilResolved(["TritonServersMissing", "TritonNotReady", "ScrapeMissing"]);
  });

  it("are all proven", () => {
    const alerts = ruleGroups(rulesInput)
      .flatMap(({ rules }) => rules)
      .filter((rule): rule is AlertRule => "alert" in rule);
    expect([...fired].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
  });
});

describe("a trial on both servers", () => {
  const measureS = 18;
  const windowS = 15;
  const ratePerS = 60;
  let measured: Measured;
  /** Unix seconds at which the window ends: inside the measured one. */
  let atS: number;
  let running: readonly { readonly labels: Readonly<Record<string, string>> }[] = [];

  beforeAll(async () => {
    const trial = await world.trial({ modelName: "good", shape: constant(ratePerS), measureS }, async () => {
      await new Promise((resolve) => setTimeout(resolve, 5000));
      running = await world.prometheus.query(built["tuning.json"]!.annotations.list![0]!.expr!);
    });
    const fromS = trial.load.measuredFromUnixMs / 1000;
    atS = fromS + measureS - 1;
    // The scrape that sees the window's end, and the rules that see that scrape.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const valid = world.results.filter((result) => result.valid).length;
    measured = {
      ...{ ...trial, windowS, ratePerS, slo, serverUsdPerH: 0.6 },
      gpuMemoryTotal: await world.gpuGauge(tritonMetrics.gpuMemoryTotalBytes),
      gpuPowerLimitW: await world.gpuGauge(tritonMetrics.gpuPowerLimitW),
      ended: { valid, invalid: world.results.length - valid },
    };
  }, 120_000);

  function meets(expectation: Expectation | undefined, what: string, value: number): void {
    if (expectation === undefined) throw new Error(`there is no check for ${what}`);
    const { least, most } = expectation;
    expect(value, `${what}, at least ${least}`).toBeGreaterThanOrEqual(least);
    expect(value, `${what}, at most ${most}`).toBeLessThanOrEqual(most);
  }

  async function compare(
    what: string,
    expr: string,
    check: Check | undefined,
    legend: (labels: Readonly<Record<string, string>>) => string,
  ) {
    const series = await world.prometheus.query(expr, atS);
    const expected = check?.(measured);
    if (expected === undefined) throw new Error(`there is no check for ${what}`);
    // Models of earlier trials have series too, without requests.
    const alive = series.filter(({ value }) => Number.isFinite(value) && value !== 0);
    if (Object.keys(expected).length === 0) return expect(alive, `${what} is empty`).toEqual([]);
    const zeroOnly = Object.values(expected).every(({ least, most }) => least === 0 && most === 0);
    if (zeroOnly) {
      expect(series.length, `${what} has series`).toBeGreaterThan(0);
      expect(alive, `${what} is zero`).toEqual([]);
      return;
    }
    const names = alive.map(({ labels }) => legend(labels));
    const must = Object.entries(expected)
      .filter(([, { least }]) => least > 0)
      .map(([name]) => name);
    for (const name of must) expect(names, `${what} has ${name}`).toContain(name);
    for (const [index, { value }] of alive.entries())
      meets(expected[names[index]!], `${what} ${names[index]}`, value);
  }

  const panels = Object.entries(built).flatMap(([file, { panels: all = [] }]) =>
    all.flatMap((panel) =>
      (("targets" in panel && panel.targets) || []).map((target) => {
        const { expr = "", legendFormat = "" } = target as { expr?: string; legendFormat?: string };
        return { file, title: ("title" in panel && panel.title) || "", expr, legendFormat };
      }),
    ),
  );

  it.each(panels)(
    "$file, $title: $legendFormat shows what was measured",
    async ({ title, expr, legendFormat }) => {
      const what = `${title}/${legendFormat}`;
      const legend = (labels: Readonly<Record<string, string>>) =>
        legendFormat.replace(/\{\{(\w+)\}\}/g, (_whole, label: string) => labels[label] ?? "");
      await compare(what, expr.replaceAll("$__rate_interval", `${windowS}s`), checks[what], legend);
    },
  );

  it.each(recordingRules(rulesInput).map(({ record }) => record))(
    "rule %s records what was measured",
    async (record) => {
      const legend = ({ model = "", pod = "" }: Readonly<Record<string, string>>) =>
        model === "" ? pod : `${model} ${pod}`;
      await compare(record, `avg_over_time(${record}[10s])`, checks[record], legend);
    },
  );

  it("the autoscaler's metric is the rate of each server", async () => {
    const { rules } = adapterRules(windowS) as { rules: [{ seriesQuery: string; metricsQuery: string }] };
    // The adapter finds pods by these labels, and fills its template like this.
    const found = await world.prometheus.query(rules[0].seriesQuery, atS);
    expect(new Set(found.map(({ labels }) => `${labels["namespace"]}/${labels["pod"]}`))).toEqual(
      new Set(["triton/triton-real", "triton/triton-local"]),
    );
    const expr = rules[0].metricsQuery
      .replace("<<.Series>>", tritonMetrics.requestSuccess)
      .replace("<<.LabelMatchers>>", 'namespace="triton",pod=~"triton-real|triton-local"')
      .replace("<<.GroupBy>>", "pod");
    const rates = await world.prometheus.query(expr, atS);
    expect(rates.map(({ labels }) => labels["pod"]).sort()).toEqual(["triton-local", "triton-real"]);
    for (const { value } of rates) expect(Math.abs(value - ratePerS / 2)).toBeLessThan(0.15 * ratePerS);
  });

  it("is named by the annotation while it runs, and by nothing afterwards", async () => {
    expect(running.map(({ labels }) => labels["variant"])).toEqual(["good"]);
    expect(running[0]?.labels["trial"]).toMatch(/^test \d+$/);
    expect(await world.prometheus.query(loadMetrics.measurementRunning)).toEqual([]);
  });

  it("together with all others adds up to the controller's counters, exactly", async () => {
    const totals = { ok: 0, late: 0, shed: 0, failed: 0 };
    const errors: Record<string, number> = {};
    for (const { total, errors: kinds } of world.results) {
      totals.ok += total.ok;
      totals.late += total.late - total.shed;
      totals.shed += total.shed;
      totals.failed += total.failed;
      for (const [kind, count] of Object.entries(kinds)) errors[kind] = (errors[kind] ?? 0) + count;
    }
    const { prometheus } = world;
    const counters = async (expr: string, label: string): Promise<Record<string, number>> => {
      const above = (await prometheus.query(expr)).filter(({ value }) => value > 0);
      return Object.fromEntries(above.map(({ labels, value }) => [labels[label] ?? "", value]));
    };
    const positive = Object.fromEntries(Object.entries(totals).filter(([, count]) => count > 0));
    expect(await counters(loadMetrics.requests, "outcome")).toEqual(positive);
    expect(await counters(loadMetrics.errors, "kind")).toEqual(errors);
    const bucket = `${loadMetrics.responseSeconds}_bucket{le="${slo.boundMs / 1000}"}`;
    expect((await prometheus.query(bucket)).map(({ value }) => value)).toEqual([totals.ok]);
    const answered = await prometheus.query(`${loadMetrics.responseSeconds}_count`);
    expect(answered.map(({ value }) => value)).toEqual([totals.ok + totals.late]);
    const invalid = world.results.filter(({ valid }) => !valid).length;
    const measurements = await counters(loadMetrics.measurements, "result");
    expect(measurements["invalid"] ?? 0).toBe(invalid);
    expect(measurements["valid"] ?? 0).toBe(world.results.length - invalid);
  });
});

it("every panel has lines over the whole time, when it is drawn", async () => {
  const range = { fromS: world.startedS, toS: Date.now() / 1000, stepS: 1, window: "5s" };
  for (const { file, svg, empty } of await drawDashboards(built, world.prometheus, range)) {
    expect(empty, `panels without data in ${file}`).toEqual([]);
    expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  }
});
