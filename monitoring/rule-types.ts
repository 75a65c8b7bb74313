/** A recording rule of Prometheus. */
export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

/** An alert rule of Prometheus. */
export interface AlertRule {
  readonly alert: string;
  readonly expr: string;
  /** How long the condition must hold. */
  readonly for: string;
  /** `page`: users suffer now. `ticket`: somebody should look in working hours. */
  readonly labels: { readonly severity: "page" | "ticket" };
  readonly annotations: {
    readonly summary: string;
    /** The first thing to do. */
    readonly action: string;
    /** Section of docs/operations.md, from the project's folder. */
    readonly runbook_url: string;
  };
}

export interface RuleGroup {
  readonly name: string;
  readonly rules: readonly (RecordingRule | AlertRule)[];
}

export interface RulesInput {
  readonly scrapeIntervalS: number;
  /** SLO: this share of answers, in percent, within this bound. */
  readonly sloPercentile: number;
  readonly sloBoundMs: number;
  /** Servers that there should be; null when an autoscaler decides. */
  readonly servers: number | null;
  /** Load workers that there should be; 0 without a load generator, or while it sleeps. */
  readonly loadWorkers: number;
  /** Multiplies every window and waiting time of the alerts. 1 (the default) in a stack; tests shorten them. */
  readonly timeScale?: number;
}

/** A PromQL duration of whole milliseconds, in the largest unit that fits. */
export function promDuration(seconds: number): string {
  const ms = Math.round(seconds * 1000);
  for (const [unit, unitMs] of [
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
  ] as const)
    if (ms > 0 && ms % unitMs === 0) return `${ms / unitMs}${unit}`;
  return `${ms}ms`;
}

/** Anchor of an alert's section in docs/operations.md, as its heading makes it. */
export function runbookUrl(alert: string): string {
  return `docs/operations.md#${alert.toLowerCase()}`;
}
