/** What the scoreboard has to show, and how far chance may take a run of few sweeps from it. Pure. */
import type { StrategyScore } from "./search-report";

/** Slack in standard deviations of a share over the sweeps that were run. */
const slackDeviations = 2.5;

/** Sentences about figures that are not met; the first row is ours, the second the common rule. */
export function complaintsAbout(rows: readonly StrategyScore[]): string[] {
  const [ours, common] = rows;
  if (ours === undefined || common === undefined) return ["there are no scores"];
  const slack = (share: number): number => slackDeviations * Math.sqrt((share * (1 - share)) / ours.sweeps);
  const complaints: string[] = [];
  const require = (holds: boolean, sentence: string): void => void (holds || complaints.push(sentence));
  const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
  require(ours.falsePassRate <=
    0.01 + slack(0.01), `${percent(ours.falsePassRate)} false passes, at most 1 % are allowed`);
  require(ours.medianRelativeError <=
    0.02, `median error ${percent(ours.medianRelativeError)}, at most 2 % are allowed`);
  require(ours.intervalCoverage >= 0.93 - slack(0.95) &&
    ours.intervalCoverage <=
      0.97 +
        slack(
          0.95,
        ), `the 95 % interval holds the truth in ${percent(ours.intervalCoverage)}, it should be 93 to 97 %`);
  require(ours.meanMeasuredS <=
    common.meanMeasuredS /
      2, `${ours.meanMeasuredS.toFixed(0)} s of load a sweep, over half of the common rule's ${common.meanMeasuredS.toFixed(0)} s`);
  require(ours.medianRelativeError < common.medianRelativeError &&
    ours.falsePassRate < common.falsePassRate, "the common rule has less error or fewer false passes");
  require(ours.rightDiagnosisRate !== null &&
    ours.rightDiagnosisRate >=
      0.95 -
        slack(0.95), `${percent(ours.rightDiagnosisRate ?? 0)} right diagnoses, at least 95 % are asked for`);
  return complaints;
}
