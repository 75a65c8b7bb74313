/** Recorded arrival times from text: one a line, in seconds or as ISO 8601 timestamps. */
import { MAX_RECORDED_ARRIVALS } from "./load-profile";

/** The year 5138 in Unix seconds: what is larger counts milliseconds, or nothing at all. */
const MAX_TIME_S = 1e11;

/** A recording that cannot be used; the message names file and line. */
export class RecordingError extends Error {
  override readonly name = "RecordingError";
}

/**
 * Arrival times in seconds since the earliest one, ascending. Empty lines and lines that start with # are left out; of lines with several
 * columns (commas, semicolons, tabs) the first counts, and one heading line may come first.
 * @throws RecordingError
 */
export function parseArrivalTimes(text: string, file: string): number[] {
  const times: number[] = [];
  let isDated: boolean | undefined;
  let mayBeHeading = true;
  text.split(/\r?\n/).forEach((line, index) => {
    const [field = ""] = line.split(/[,;\t]/);
    const value = field.trim().replace(/^"(.*)"$/, "$1");
    if (value === "" || value.startsWith("#")) return;
    const timeS = timeOf(value);
    if (timeS === undefined) {
      if (!mayBeHeading || /^\d/.test(value))
        throw new RecordingError(
          `${file}, line ${index + 1}: ${JSON.stringify(value.slice(0, 40))} is no time; write seconds (12.25) or 2026-05-01T12:00:00.250Z`,
        );
    } else {
      const isTimestamp = value.includes(":");
      if (isTimestamp !== (isDated ??= isTimestamp))
        throw new RecordingError(
          `${file}, line ${index + 1}: seconds and timestamps are mixed; write one kind`,
        );
      times.push(timeS);
    }
    mayBeHeading = false;
  });
  if (times.length === 0)
    throw new RecordingError(`${file} has no arrival time: write one a line, in seconds`);
  if (times.length > MAX_RECORDED_ARRIVALS)
    throw new RecordingError(
      `${file} has ${times.length} arrivals; at most ${MAX_RECORDED_ARRIVALS} fit: cut the recording`,
    );
  times.sort((one, other) => one - other);
  const first = times[0]!;
  return times.map((time) => Math.round((time - first) * 1e6) / 1e6);
}

function timeOf(value: string): number | undefined {
  if (/^\d+(\.\d+)?(e[+-]?\d+)?$/i.test(value)) {
    const timeS = Number(value);
    return timeS <= MAX_TIME_S ? timeS : undefined;
  }
  if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(value)) return undefined;
  const unixMs = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(unixMs) ? undefined : unixMs / 1000;
}
