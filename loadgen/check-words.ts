/**
 * Whether what a worker says can be true. Workers have the token, so this keeps no thief out: it keeps one that is broken, or lies, from
 * ending the controller, filling its memory, or putting figures into a result that nobody measured. Each function gives the problem in
 * words, or undefined.
 */
import { sparseProblem, type SparseHistogram } from "./histogram";
import type { LoadSpec } from "./load-spec";
import type { Delta, Heartbeat, Register, WindowHealth } from "./protocol";
import { INTERVAL_S } from "./slo-counter";
import type { TallyMessage } from "./tally";

/** Longest name of a worker: a pod's name has at most 253 characters. */
const MAX_NAME_CHARS = 253;
/** Classes of errors of one report: gRPC has 17 statuses, and two are our own. */
const MAX_ERROR_KINDS = 32;
const MAX_KIND_CHARS = 64;
/** A report may speak of an interval that begins so soon, wall seconds: workers start a little earlier or later than the controller's clock says. */
const FUTURE_S = 2;

export function registerProblem({ name, instanceId }: Register): string | undefined {
  if (name.trim() === "" || name.length > MAX_NAME_CHARS || /\p{Cc}/u.test(name))
    return `a worker's name has 1 to ${MAX_NAME_CHARS} printable characters, got ${JSON.stringify(name.slice(0, 80))}`;
  if (instanceId.length > MAX_NAME_CHARS) return `an instance's id of ${instanceId.length} characters`;
  return undefined;
}

export function heartbeatProblem(heartbeat: Heartbeat): string | undefined {
  const { runId: _runId, ...figures } = heartbeat;
  return negative(figures);
}

export function healthProblem(health: WindowHealth | null | undefined): string | undefined {
  return health === null || health === undefined ? "there is none" : negative({ ...health });
}

/** @param elapsedS model seconds since the load's start */
export function deltaProblem(delta: Delta, spec: LoadSpec, elapsedS: number): string | undefined {
  const soonS = elapsedS + FUTURE_S / spec.timeDilation;
  return (
    negative({ sentBytes: delta.sentBytes }) ??
    tallyProblem(delta.measured, spec, spec.measureS, soonS - spec.warmupS) ??
    tallyProblem(delta.warmup, spec, spec.warmupS, soonS)
  );
}

/** @param lengthS of what it counts; nothing in it has begun after `soonS`; both are on the tally's own time */
function tallyProblem(
  tally: TallyMessage | null | undefined,
  { addresses }: LoadSpec,
  lengthS: number,
  soonS: number,
): string | undefined {
  if (!tally?.response || !tally.service || !tally.lateness)
    return "a tally or one of its histograms is missing";
  const { response, service, lateness } = tally;
  for (const histogram of [response, service, lateness]) {
    const problem = sparseProblem(histogram);
    if (problem !== undefined) return problem;
  }
  let answered = 0;
  let failed = 0;
  let shed = 0;
  for (const sums of tally.intervals) {
    const { index, responseSumUs, ...counts } = sums;
    const problem = notCounts({ index, ...counts }) ?? negative({ responseSumUs });
    if (problem !== undefined) return problem;
    if (index * INTERVAL_S >= lengthS) return `interval ${index} of ${lengthS} s`;
    if (index * INTERVAL_S > soonS) return `interval ${index} has not come yet`;
    if (sums.shed > sums.late) return `${sums.shed} shed requests, but ${sums.late} late ones`;
    answered += sums.ok + sums.late - sums.shed;
    failed += sums.failed;
    shed += sums.shed;
  }
  return (
    differs("answered requests", answered, "response times", countOf(response)) ??
    differs("answered requests", answered, "service times", countOf(service)) ??
    addressProblem(tally, addresses, answered) ??
    errorProblem(tally, failed) ??
    notCounts({ onTimeSends: tally.onTimeSends }) ??
    (tally.onTimeSends > countOf(lateness) + shed
      ? `${tally.onTimeSends} requests sent in time, but ${countOf(lateness) + shed} sent at all`
      : undefined)
  );
}

function addressProblem(
  { perAddress }: TallyMessage,
  addresses: readonly string[],
  answered: number,
): string | undefined {
  let sum = 0;
  for (const { address, answered: count } of perAddress) {
    if (!addresses.includes(address))
      return `answers of ${JSON.stringify(address.slice(0, 80))}, which is not loaded`;
    const problem = notCounts({ [address]: count });
    if (problem !== undefined) return problem;
    sum += count;
  }
  return differs("answered requests", answered, "answers by address", sum);
}

function errorProblem({ errors }: TallyMessage, failed: number): string | undefined {
  if (errors.length > MAX_ERROR_KINDS) return `${errors.length} classes of errors`;
  let sum = 0;
  for (const { kind, count } of errors) {
    if (kind.length > MAX_KIND_CHARS) return `a class of errors of ${kind.length} characters`;
    const problem = notCounts({ [kind]: count });
    if (problem !== undefined) return problem;
    sum += count;
  }
  return differs("failed requests", failed, "errors by class", sum);
}

function countOf({ counts }: SparseHistogram): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

function differs(what: string, one: number, otherWhat: string, other: number): string | undefined {
  return one === other ? undefined : `${one} ${what}, but ${other} ${otherWhat}`;
}

/** The named figures that are no counts, i.e. whole numbers from 0 on. */
function notCounts(figures: Readonly<Record<string, number>>): string | undefined {
  for (const name in figures) {
    const value = figures[name]!;
    if (!(Number.isSafeInteger(value) && value >= 0)) return `${name} of ${value}`;
  }
  return undefined;
}

function negative(figures: Readonly<Record<string, number>>): string | undefined {
  for (const name in figures) {
    const value = figures[name]!;
    if (!(value >= 0 && value < Infinity)) return `${name} of ${value}`;
  }
  return undefined;
}
