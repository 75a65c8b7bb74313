/** Checks a load spec before anything is started: all errors at once, each with the field and the way out. */
import { splitHostPort } from "./host-port";
import { imageShapeOf } from "./image-tensor";
import { isOpenLoop, peakRatePerS, profileProblems, type LoadProfile } from "./load-profile";
import type { LoadSpec } from "./load-spec";

/** Longest time that a timer can wait, milliseconds (24.8 days). */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A spec that cannot be run. `problems` has one sentence per wrong field. */
export class LoadSpecError extends Error {
  override readonly name = "LoadSpecError";

  constructor(readonly problems: readonly string[]) {
    super(`the load cannot be run:\n${problems.map((problem) => `- ${problem}`).join("\n")}`);
  }
}

/** @throws LoadSpecError naming every wrong field */
export function checkLoadSpec(spec: LoadSpec): void {
  const problems: string[] = [];
  const check = (isRight: boolean, problem: string): void => {
    if (!isRight) problems.push(problem);
  };
  const above = (name: keyof LoadSpec, least: number, unit: string): void => {
    const value = spec[name] as number;
    check(value > least && Number.isFinite(value), `${name} must be above ${least}${unit}, got ${value}`);
  };
  const wholeFrom = (name: keyof LoadSpec, least: number): void => {
    const value = spec[name] as number;
    check(
      Number.isSafeInteger(value) && value >= least,
      `${name} must be a whole number >= ${least}, got ${value}`,
    );
  };

  check(spec.id !== "", "id must not be empty");
  check(spec.addresses.length > 0, "addresses must name at least one host:port");
  for (const address of spec.addresses) {
    try {
      splitHostPort(address.replace(/^dns:\/\/\//, ""));
    } catch (error) {
      problems.push(`addresses: ${(error as Error).message}`);
    }
  }
  check(
    new Set(spec.addresses).size === spec.addresses.length,
    "addresses must not repeat one another: results are counted per address",
  );
  check(spec.modelName !== "", "modelName must not be empty");
  check(spec.inputName !== "", "inputName must not be empty");
  check(spec.outputName !== "", "outputName must not be empty");
  check(spec.imageFolder !== "", "imageFolder must not be empty");
  if (spec.inputDims !== undefined) {
    try {
      imageShapeOf(spec.inputDims);
    } catch (error) {
      problems.push(`inputDims: ${(error as Error).message}`);
    }
  }
  const { subject } = spec;
  check(
    subject === undefined || [subject.variant, subject.trial].every((text) => typeof text === "string"),
    "subject needs the texts variant and trial, or must be left out",
  );
  problems.push(...profileProblems(spec.shape));
  checkStopRule(spec, check);
  check(Number.isSafeInteger(spec.seed), `seed must be a whole number, got ${spec.seed}`);
  check(
    spec.warmupS >= 0 && Number.isFinite(spec.warmupS),
    `warmupS must be 0 or more seconds, got ${spec.warmupS}`,
  );
  above("measureS", 0, " s");
  const lengthMs = (spec.warmupS + spec.measureS) * 1000 * spec.timeDilation;
  check(
    !(lengthMs > MAX_TIMER_MS),
    `warmupS plus measureS, times timeDilation, must be at most ${MAX_TIMER_MS / 1000} s, got ${lengthMs / 1000}`,
  );
  above("sloBoundMs", 0, " ms");
  check(
    spec.deadlineMs >= spec.sloBoundMs,
    `deadlineMs must be at least sloBoundMs (${spec.sloBoundMs}), got ${spec.deadlineMs}`,
  );
  check(
    spec.deadlineMs * spec.timeDilation <= MAX_TIMER_MS,
    `deadlineMs times timeDilation must be at most ${MAX_TIMER_MS} ms, got ${spec.deadlineMs * spec.timeDilation}`,
  );
  wholeFrom("maxInFlight", 1);
  wholeFrom("checkEvery", 0);
  wholeFrom("connectionsPerAddress", 1);
  check(spec.scoreTolerance >= 0, `scoreTolerance must be 0 or more, got ${spec.scoreTolerance}`);
  check(
    spec.timeDilation >= 1 && Number.isFinite(spec.timeDilation),
    `timeDilation must be 1 or more, got ${spec.timeDilation}`,
  );
  checkInFlight(spec, check);
  if (problems.length > 0) throw new LoadSpecError(problems);
}

/** @throws LoadSpecError when the running measurement cannot go over to this shape */
export function checkChange(spec: LoadSpec, shape: LoadProfile): void {
  const problems = profileProblems(shape);
  if (problems.length === 0)
    checkInFlight({ ...spec, shape }, (isRight, problem) => void (isRight || problems.push(problem)));
  if (problems.length > 0) throw new LoadSpecError(problems);
}

type Check = (isRight: boolean, problem: string) => void;

function checkInFlight(spec: LoadSpec, check: Check): void {
  const { shape } = spec;
  if (profileProblems(shape).length > 0) return;
  if (!isOpenLoop(shape)) {
    check(
      !(shape.users > spec.maxInFlight),
      `maxInFlight of ${spec.maxInFlight} would shed requests of ${shape.users} users: allow at least one a user`,
    );
  } else {
    // Little's law: a server that just holds the SLO has this many requests in flight.
    const peakPerS = peakRatePerS(shape);
    const needed = Math.ceil((peakPerS * spec.sloBoundMs) / 1000);
    check(
      !(spec.maxInFlight < needed),
      `maxInFlight of ${spec.maxInFlight} would shed requests that the SLO allows: ${peakPerS}/s within ` +
        `${spec.sloBoundMs} ms needs at least ${needed}`,
    );
  }
}

function checkStopRule({ stopWhen }: LoadSpec, check: Check): void {
  if (stopWhen === undefined) return;
  const { quantile, boundMs, windowS, minSamples } = stopWhen;
  check(quantile > 0 && quantile < 1, `stopWhen.quantile must lie between 0 and 1, got ${quantile}`);
  check(boundMs > 0 && Number.isFinite(boundMs), `stopWhen.boundMs must be above 0 ms, got ${boundMs}`);
  check(windowS >= 1 && Number.isFinite(windowS), `stopWhen.windowS must be 1 s or more, got ${windowS}`);
  check(
    Number.isSafeInteger(minSamples) && minSamples >= 1,
    `stopWhen.minSamples must be a whole number >= 1, got ${minSamples}`,
  );
}
