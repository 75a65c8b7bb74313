/** The command line that repeats a sweep, from its manifest. Pure. */
import type { Manifest } from "../tuning/results/manifest";
import { ResultsError } from "../tuning/results/results-error";

/** Options of the tune command by their name in the manifest, where the command's name is another one. */
const otherNames: Readonly<Record<string, string>> = {
  goalRatePerS: "--goal-rate",
  maxRatePerS: "--max-rate",
  maxCostUsd: "--max-cost",
};
/** What a repetition decides itself, or must not repeat. */
const leftOut = new Set([
  "out",
  "resume",
  "json",
  "apply",
  "after",
  "yes",
  "effort",
  "slo",
  "triton",
  "accuracy",
  "seed",
]);
/** Only given to a stack, and then always. */
const ofStacks = new Set(["maxCostUsd"]);
/** Only given to the local server, and then always. */
const ofLocalServer = new Set(["executor"]);

/** @throws ResultsError when the manifest holds an option that this version does not know how to repeat */
export function wordsToRepeat({ options, seed, slo }: Manifest): string[] {
  const words = ["--seed", String(seed), "--slo", `p${100 * slo.quantile}=${slo.boundMs}ms`];
  if (options["effort"] === "thorough") words.push("--thorough");
  if (options["accuracy"] === false) words.push("--no-accuracy");
  const { triton } = options;
  if (typeof triton === "object" && triton !== null && !Array.isArray(triton)) {
    words.push("--triton", listOf(triton["addresses"]));
    if (triton["metrics"]) words.push("--metrics", listOf(triton["metrics"]));
  }
  for (const [name, value] of Object.entries(options)) {
    if (leftOut.has(name) || value === null || value === false || value === 0) continue;
    if (ofStacks.has(name) && options["stack"] === null) continue;
    if (ofLocalServer.has(name) && (options["stack"] !== null || triton !== null)) continue;
    const option =
      otherNames[name] ?? `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    if (value === true) words.push(option);
    else if (Array.isArray(value)) words.push(option, listOf(value));
    else if (typeof value === "object")
      throw new ResultsError(
        "invalid",
        `the manifest's option ${name} is not known: repeat the sweep by hand`,
      );
    else words.push(option, String(value));
  }
  return words;
}

function listOf(value: unknown): string {
  return Array.isArray(value) ? value.join(",") : String(value);
}
