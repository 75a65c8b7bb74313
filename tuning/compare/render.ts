/** A comparison as text for a terminal or a CI log. Pure. */
import { printable } from "../report/ansi";
import { formatRate } from "../report/format";
import { textTable } from "../report/text-table";
import type { Comparison, VariantComparison } from "./compare";

/** What was recorded about the circumstances of two sweeps. */
export interface Circumstances {
  /** What else differs between them, in sentences. */
  readonly differences: readonly string[];
  /** What may differ too, but is not known, in sentences. */
  readonly notCompared: readonly string[];
}

export function renderComparison(
  comparison: Comparison,
  { differences, notCompared }: Circumstances,
): string {
  const { variants, onlyBefore, onlyAfter, recommended, verdict, falseAlarm } = comparison;
  const table = textTable(
    [
      { title: "variant", right: false },
      { title: "before", right: true },
      { title: "after", right: true },
      { title: "change", right: true },
      { title: "interval", right: true },
      { title: "", right: false },
    ],
    variants.map((one) => [
      one.name,
      rateOf(one.before),
      rateOf(one.after),
      ...changeOf(one),
      verdictOf(one),
    ]),
  );
  const causes = variants.flatMap(({ name, causes: of }) =>
    of === null ? [] : [`${name} was ${causeText(of.before)}, and is ${causeText(of.after)} now`],
  );
  const lines = [
    ...table,
    "",
    ...causes,
    ...only(onlyBefore, "before"),
    ...only(onlyAfter, "after"),
    ...(recommended.before === recommended.after
      ? []
      : [`recommended before: ${recommended.before ?? "none"}, now: ${recommended.after ?? "none"}`]),
    ...(differences.length === 0
      ? ["nothing else that was recorded differs between the two sweeps"]
      : differences.map((difference) => `differs: ${difference}`)),
    ...notCompared.map((sentence) => `not known, so not compared: ${sentence}`),
    "",
    `Verdict: ${verdict}. ${explanationOf(comparison)} (false alarms: at most ${Math.round(100 * falseAlarm)} % of comparisons)`,
    "",
  ];
  return lines.map(printable).join("\n");
}

function explanationOf({ verdict, variants }: Comparison): string {
  const named = variants.filter((one) => one.verdict === verdict).map(({ name }) => name);
  if (verdict !== "no evidence") return `${named.join(", ")}: beyond what chance explains.`;
  const widths = variants.flatMap(({ ratio }) => (ratio === null ? [] : [ratio.high / ratio.estimate - 1]));
  if (widths.length === 0) return "There are no two rates to compare.";
  const which = widths.length === variants.length ? "of any variant" : "of a variant with two rates";
  return `A change of more than ${(100 * Math.max(...widths)).toFixed(1)} % ${which} would have been seen.`;
}

function causeText(cause: string): string {
  return cause === "none" ? "without a known limit" : cause;
}

function verdictOf({ verdict, remark }: VariantComparison): string {
  return remark === null ? verdict : `${verdict} (${remark})`;
}

function rateOf(rate: number | null): string {
  return rate === null ? "–" : formatRate(rate);
}

function changeOf({ ratio }: VariantComparison): [string, string] {
  if (ratio === null) return ["–", "–"];
  const signed = (factor: number): string => `${factor >= 1 ? "+" : ""}${(100 * (factor - 1)).toFixed(1)} %`;
  return [signed(ratio.estimate), `${signed(ratio.low)} .. ${signed(ratio.high)}`];
}

function only(names: readonly string[], when: string): string[] {
  return names.length === 0 ? [] : [`measured ${when} only: ${names.join(", ")}`];
}
