import { expect, it } from "vitest";
import { exitCodeHelp, exitCodeOf, exitCodes } from "../../scripts/exit-codes";
import { buildResult } from "../../tuning/results/build-result";
import { context, failedOutcome, outcomes } from "../tuning/fixtures/outcomes";

const result = (goalRatePerS: number | null, endedEarly: string | null = null) =>
  buildResult(outcomes, { ...context, goalRatePerS, endedEarly });
const none = buildResult([failedOutcome("original", "too slow")], context);

it.each([
  ["an answer", result(null), false, 0],
  ["the goal reached", result(1500), false, 0],
  ["no variant held the SLO", none, false, 3],
  ["ended early", result(1500, "the server died"), false, 4],
  ["the goal not reached", result(9000), false, 5],
  ["the goal uncertain", result(2260), false, 5],
  ["interrupted", result(null, "interrupted"), true, 130],
])("%s", (_what, given, interrupted, code) => {
  expect(exitCodeOf(given, interrupted)).toBe(code);
});

it("the help lists every code", () => {
  for (const code of Object.values(exitCodes)) expect(exitCodeHelp).toMatch(new RegExp(`^ +${code}  `, "m"));
});
