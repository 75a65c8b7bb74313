/** Scores put together: a row a strategy, a row a kind of world. Pure. */
import type { Score } from "./search-answer";
import { worldKinds } from "./search-worlds";

/** A row of the scoreboard; shares are 0..1. */
export interface StrategyScore {
  readonly name: string;
  readonly sweeps: number;
  /** Share of sweeps whose promised rate lies above the truth. */
  readonly falsePassRate: number;
  readonly medianRelativeError: number;
  /** Share of sweeps whose interval (ours: 95 %; others: last pass to first fail) holds the truth. */
  readonly intervalCoverage: number;
  /** Load, warm-up included, model seconds a sweep. */
  readonly meanMeasuredS: number;
  /** Share of sweeps that name the cause and the change that gains most; null: the strategy names none. */
  readonly rightDiagnosisRate: number | null;
}

/** In the order in which the strategies first appear: ours first. */
export function summarise(scores: readonly Score[]): StrategyScore[] {
  return [...new Set(scores.map(({ strategy }) => strategy))].map((name) => {
    const own = scores.filter(({ strategy }) => strategy === name);
    const diagnosed = own.filter(({ rightCause }) => rightCause !== null);
    return {
      name,
      sweeps: own.length,
      falsePassRate: share(own, ({ falsePass }) => falsePass),
      medianRelativeError: quantile(
        own.map(({ error }) => Math.abs(error)),
        0.5,
      ),
      intervalCoverage: share(own, ({ covered }) => covered),
      meanMeasuredS: mean(own.map(({ measuredS }) => measuredS)),
      rightDiagnosisRate:
        diagnosed.length === 0
          ? null
          : share(diagnosed, ({ rightCause, rightMove }) => rightCause! && rightMove!),
    };
  });
}

export function renderTable(rows: readonly StrategyScore[]): string {
  return [
    "| strategy | sweeps | false passes | median error | interval holds the truth | load a sweep | right diagnosis |",
    "|---|---|---|---|---|---|---|",
    ...rows.map(
      (row) =>
        `| ${row.name} | ${row.sweeps} | ${percent(row.falsePassRate)} | ${percent(row.medianRelativeError)} | ` +
        `${percent(row.intervalCoverage)} | ${row.meanMeasuredS.toFixed(0)} s | ` +
        `${row.rightDiagnosisRate === null ? "–" : percent(row.rightDiagnosisRate)} |`,
    ),
  ].join("\n");
}

/** A text with the table between its two markers. */
export function withTable(text: string, table: string): string {
  const [start, end] = ["<!-- scoreboard -->", "<!-- /scoreboard -->"];
  const [from, to] = [text.indexOf(start), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`The text has no ${start} ... ${end} for the table.`);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

/** One strategy by kind of world. */
export function renderKinds(scores: readonly Score[], strategy: string): string {
  const own = scores.filter((score) => score.strategy === strategy);
  const lines = worldKinds.flatMap((kind) => {
    const list = own.filter((score) => score.kind === kind);
    if (list.length === 0) return [];
    const errors = list.map(({ error }) => Math.abs(error));
    const cells = [
      percent(quantile(errors, 0.5)),
      percent(quantile(errors, 0.9)),
      percent(share(list, ({ covered }) => covered)),
      percent(share(list, ({ falsePass }) => falsePass)),
      percent(
        quantile(
          list.flatMap(({ halfWidth }) => halfWidth ?? []),
          0.5,
        ),
      ),
      percent(mean(list.flatMap(({ promisedShare }) => promisedShare ?? []))),
      `${mean(list.map(({ measuredS }) => measuredS)).toFixed(0)} s`,
      mean(list.map(({ trials }) => trials)).toFixed(1),
      percent(share(list, ({ rightCause }) => rightCause === true)),
      percent(share(list, ({ rightMove }) => rightMove === true)),
    ];
    return [`| ${kind} | ${list.length} | ${cells.join(" | ")} |`];
  });
  return [
    "| kind | sweeps | median error | p90 error | covered | false passes | half width | promised/truth | load | trials | cause | move |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

function percent(value: number): string {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : "–";
}

function mean(list: readonly number[]): number {
  return list.length === 0 ? NaN : list.reduce((sum, value) => sum + value, 0) / list.length;
}

function share<Item>(list: readonly Item[], test: (item: Item) => boolean): number {
  return list.filter(test).length / list.length;
}

/** Nearest rank. */
function quantile(list: readonly number[], q: number): number {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN;
}
