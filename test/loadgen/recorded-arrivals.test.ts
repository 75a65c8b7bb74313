import { expect, it } from "vitest";
import { parseArrivalTimes } from "../../loadgen/recorded-arrivals";

const parse = (text: string): number[] => parseArrivalTimes(text, "log.csv");

it.each([
  ["seconds in any order", "3.5\n1\n\n# a remark\n2.25\r\n", [0, 1.25, 2.5]],
  ["Unix times", "1700000000.5\n1700000001", [0, 0.5]],
  [
    "timestamps in the first column under a heading",
    'time,path\n"2026-05-01T12:00:00.250Z",/a\n2026-05-01 12:00:01Z;x\n',
    [0, 0.75],
  ],
  ["one arrival", "7", [0]],
])("%s", (_, text, times) => {
  expect(parse(text)).toEqual(times);
});

it.each([
  ["nothing", "# only a remark\n", /log\.csv has no arrival time/],
  ["words amid times", "1\nsoon\n2", /log\.csv, line 2: "soon" is no time/],
  ["negative times", "1\n-2", /line 2: "-2" is no time/],
  ["a date that is none", "0\n2026-99-01T12:00:00Z", /line 2/],
  ["a date that is none in the first line, which is no heading", "2026-99-01T12:00:00Z\n", /line 1/],
  ["Unix milliseconds", "1700000000500\n1700000001000", /line 1: "1700000000500" is no time/],
  ["endless times", "0\n1e999", /line 2/],
  ["seconds among timestamps", "2026-05-01T12:00:00Z\n5", /line 2: seconds and timestamps are mixed/],
  ["a file that is no text", "time\n\u001b[2J\u0000", /line 2: "\\u001b\[2J\\u0000" is no time/],
])("%s: refused by name", (_, text, message) => {
  expect(() => parse(text)).toThrow(message);
});
