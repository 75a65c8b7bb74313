/** What the scoreboard has to show, and how far chance may take a run of few sweeps from it. Pure. */
import type { StrategyScore } from "./search-report";

/** Slack in standard deviations of a share over the sweeps that were run. */
const slackDeviations = 2;
/** Medians of hundreds of sweeps hardly depend on chance; measured are 0.3 % and a third. */
const mostMedianError = 0.01;
const mostLoadShare = 0.4;
/** A 95 % interval that holds the truth more often than this is wider than need be. */
const mostCoverage = 0.97;

/** Sentences about figures that are not met; the first row is ours, the second the common rule. */
export function complaintsAbout(rows: readonly StrategyScore[]): string[] {
  const [ours, common] = rows;
  if (ours === undefined || common === undefined) return ["there are no scores"];
  const slack = (share: number): number => slackDeviations * Math.sqrt((share * (1 - share)) / ours.sweeps);
  const complaints: string[] = [];
  const demand = (holds: boolean, sentence: string): void => void (holds || complaints.push(sentence));
  const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
  const { falsePassRate, medianRelativeError, intervalCoverage, meanMeasuredS, rightDiagnosisRate } = ours;
  demand(
    falsePassRate <= 0.01 + slack(0.01),
    `${percent(falsePassRate)} false passes, at most 1 % are allowed`,
  );
  demand(
    medianRelativeError <= mostMedianError,
    `median error ${percent(medianRelativeError)}, at most ${percent(mostMedianError)} are allowed`,
  );
  demand(
    intervalCoverage >= 0.95 - slack(0.95) && intervalCoverage <= mostCoverage + slack(mostCoverage),
    `the 95 % interval holds the truth in ${percent(intervalCoverage)}, it should be 95 to ${percent(mostCoverage)}`,
  );
  demand(
    meanMeasuredS <= common.meanMeasuredS * mostLoadShare,
    `${meanMeasuredS.toFixed(0)} s of load a sweep, over ${percent(mostLoadShare)} of the common rule's ${common.meanMeasuredS.toFixed(0)} s`,
  );
  demand(
    medianRelativeError < common.medianRelativeError && falsePassRate < common.falsePassRate,
    "the common rule has less error or fewer false passes",
  );
  demand(
    rightDiagnosisRate !== null && rightDiagnosisRate >= 0.95 - slack(0.95),
    `${percent(rightDiagnosisRate ?? 0)} right diagnoses, at least 95 % are asked for`,
  );
  return complaints;
}
