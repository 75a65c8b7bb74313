/**
 * Reads option values. A reader returns the value, or complains with what is wrong and how to put it right, so that all
 * complaints can be shown at once.
 */
import { splitHostPort } from "../loadgen/host-port";
import { MAX_BUSY_WAIT_MS } from "../loadgen/wake-timer";
import { didYouMean } from "../model-repo/nearest-name";

/** Collects complaints about options. */
export class Complaints {
  readonly list: string[] = [];
  /** Adds a complaint; returns null for the reader to hand back. */
  add(option: string, given: string, fix: string): null {
    this.list.push(`${option} ${given}: ${fix}`);
    return null;
  }
}

/** Raw value from the command line: text, `true` for an option that came without its value, undefined when absent. */
export type Raw = string | true | undefined;

/** Text of an option that must have a value; null when absent or when the value is missing (then with a complaint). */
export function textOf(raw: Raw, option: string, example: string, complaints: Complaints): string | null {
  if (raw === undefined) return null;
  if (raw !== true && raw.trim() !== "") return raw;
  complaints.list.push(`${option} needs a value, e.g. ${option} ${example}`);
  return null;
}

export interface NumberRule {
  readonly min: number;
  readonly max: number;
  readonly integer: boolean;
  /** What to give, e.g. "a whole number from 1 to 64". */
  readonly fix: string;
}

/** Rules of options that several commands have. */
export const commonRules = {
  workers: { min: 1, max: 64, integer: true, fix: "a whole number from 1 to 64, or auto" },
  busyWaitMs: {
    min: 0,
    max: MAX_BUSY_WAIT_MS,
    integer: false,
    fix: `milliseconds from 0 to ${MAX_BUSY_WAIT_MS}, e.g. 2`,
  },
  seed: { min: 0, max: 2 ** 32 - 1, integer: true, fix: "a whole number from 0 to 4294967295" },
} satisfies Record<string, NumberRule>;

/** A plain decimal number within a range. */
export function numberOf(
  text: string,
  option: string,
  rule: NumberRule,
  complaints: Complaints,
): number | null {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  const inRange = value >= rule.min && value <= rule.max;
  return inRange && (!rule.integer || Number.isInteger(value))
    ? value
    : complaints.add(option, text, `give ${rule.fix}`);
}

/** One of a few words. */
export function wordOf<Word extends string>(
  text: string,
  option: string,
  words: readonly Word[],
  complaints: Complaints,
): Word | null {
  const word = words.find((candidate) => candidate === text);
  return (
    word ??
    complaints.add(
      option,
      text,
      `give one of ${words.join(", ")}${didYouMean(text, words).replace(/^;/, " -")}`,
    )
  );
}

/** A list of known names, separated by commas, each once. */
export function namesOf(
  text: string,
  option: string,
  known: readonly string[],
  complaints: Complaints,
): readonly string[] | null {
  const names = text.split(",").map((name) => name.trim());
  const before = complaints.list.length;
  for (const [index, name] of names.entries()) {
    if (name === "") complaints.add(option, text, "has an empty name; separate names by single commas");
    else if (names.indexOf(name) < index) complaints.add(option, name, "is named twice; name it once");
    else if (!known.includes(name))
      complaints.add(
        option,
        name,
        `is not a known variant${didYouMean(name, known) || "."} Known: ${known.join(", ")}`,
      );
  }
  return complaints.list.length > before ? null : names;
}

/** Addresses host:port, separated by commas, each once. */
export function addressesOf(text: string, option: string, complaints: Complaints): readonly string[] | null {
  return listOf(text, option, complaints, (word) => {
    try {
      splitHostPort(word);
      return null;
    } catch {
      return "give the host and port of the server's gRPC endpoint, e.g. localhost:8001";
    }
  });
}

/** http or https URLs, separated by commas, each once. */
export function urlsOf(text: string, option: string, complaints: Complaints): readonly string[] | null {
  return listOf(text, option, complaints, (word) =>
    /^https?:$/.test(URL.canParse(word) ? new URL(word).protocol : "")
      ? null
      : "give a URL, e.g. http://localhost:8002/metrics",
  );
}

/** Whole numbers from 1, separated by commas, each once. */
export function countsOf(text: string, option: string, complaints: Complaints): readonly number[] | null {
  const words = listOf(text, option, complaints, (word) =>
    /^[1-9]\d*$/.test(word) ? null : "give whole numbers from 1, e.g. 1,2",
  );
  return words && words.map(Number);
}

/** Words separated by commas, each once; what they name is checked by whoever knows the names. */
export function wordsOf(text: string, option: string, complaints: Complaints): readonly string[] | null {
  return listOf(text, option, complaints, (word) =>
    word === "" ? "has an empty name; separate names by single commas" : null,
  );
}

function listOf(
  text: string,
  option: string,
  complaints: Complaints,
  problemOf: (word: string) => string | null,
): readonly string[] | null {
  const words = text.split(",").map((word) => word.trim());
  const before = complaints.list.length;
  for (const [index, word] of words.entries()) {
    const problem = words.indexOf(word) < index ? "is named twice; name it once" : problemOf(word);
    if (problem !== null) complaints.add(option, word === "" ? text : word, problem);
  }
  return complaints.list.length > before ? null : words;
}

const quantileRange = { min: 0.5, max: 0.999 };
const boundRangeMs = { min: 1, max: 60_000 };

/** An SLO such as p95=100ms, p99.9=50ms, p95=0.1s. */
export function sloOf(
  text: string,
  option: string,
  complaints: Complaints,
): { quantile: number; boundMs: number } | null {
  const match = /^p(\d+(?:\.\d+)?)=(\d+(?:\.\d+)?)(ms|s)$/i.exec(text);
  if (!match)
    return complaints.add(option, text, "give a percentile and a bound with its unit, e.g. p95=100ms");
  const [, percentile, bound, unit] = match;
  // Through text, so that p99.9 is 0.999 and not 0.9990000000000001.
  const quantile = Number((Number(percentile) / 100).toPrecision(12));
  const boundMs = Number(bound) * (unit?.toLowerCase() === "s" ? 1000 : 1);
  if (!(quantile >= quantileRange.min && quantile <= quantileRange.max))
    return complaints.add(option, text, "the percentile must lie between p50 and p99.9");
  if (!(boundMs >= boundRangeMs.min && boundMs <= boundRangeMs.max))
    return complaints.add(option, text, "the bound must lie between 1ms and 60s");
  return { quantile, boundMs };
}

/** An option whose value may be left out. Null: it was not given, or a complaint was made. */
export function switchOrNumberOf(
  given: Raw,
  option: string,
  rule: NumberRule,
  withoutValue: string,
  complaints: Complaints,
): number | null {
  return given === undefined
    ? null
    : numberOf(given === true ? withoutValue : given, option, rule, complaints);
}
