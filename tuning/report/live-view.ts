/**
 * What a running sweep shows: on a terminal one line that is rewritten in place, with a lasting line a variant; elsewhere (a file,
 * a CI log) one line a trial.
 */
import type { VariantOutcome } from "../outcome";
import { judge } from "../statistics/verdict";
import type { SweepEvent } from "../sweep";
import type { TrialSpec } from "../trial";
import { painter, printable, type Painter, type Style } from "./ansi";
import { SweepClock } from "./eta";
import { formatDuration, formatMs, formatRate, formatShare, formatUsd } from "./format";

/** Where the view writes: process.stderr, or a stand-in. */
export interface ViewStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export interface LiveViewOptions {
  readonly colour: boolean;
  /** Wall-clock seconds, for the time left. */
  readonly nowS: () => number;
}

const verdictStyle: Readonly<Record<string, Style>> = { pass: "green", fail: "red", undecided: "yellow" };
/** Columns when the stream does not say. */
const defaultColumns = 100;
/** A warm server needs less than this; where lines stay, only what takes longer is worth one, seconds. */
const longWarmUpS = 5;
const clearLine = "\r\u001b[2K";

/** Feed it with every event of the sweep; call `close` at the end, also after an error. */
export class LiveView {
  private readonly paint: Painter;
  private readonly clock: SweepClock;
  private variant = "";
  private position = "";
  private highestPass: number | null = null;
  private lowestFail: number | null = null;
  private lastVerdict: string | null = null;
  private lineShown = false;
  private costUsd: (() => number) | null = null;

  constructor(
    private readonly stream: ViewStream,
    private readonly options: LiveViewOptions,
  ) {
    this.paint = painter(options.colour);
    this.clock = new SweepClock(options.nowS);
  }

  onEvent(event: SweepEvent): void {
    switch (event.kind) {
      case "variant-started":
        this.clock.variantStarted(event.index, event.of);
        this.variant = printable(event.variant.name);
        this.position = `[${event.index + 1}/${event.of}]`;
        this.highestPass = this.lowestFail = this.lastVerdict = null;
        if (this.stream.isTTY) this.showLine([`${this.position} ${this.variant}`, "loading"]);
        break;
      case "warming-up":
        if (this.stream.isTTY) this.showLine(this.warmUpParts(event));
        else if (event.progress.elapsedS >= longWarmUpS) this.print(joined(this.warmUpParts(event)));
        break;
      case "trial-started":
        if (this.stream.isTTY) this.showLine([...this.trialParts(event.spec), "warming up", this.timeLeft()]);
        break;
      case "trial-progress":
        if (this.stream.isTTY) this.showProgress(event);
        break;
      case "trial-finished":
        this.trialFinished(event);
        break;
      case "trial-failed":
        this.print(
          `${this.trialParts(event.spec).join("  ")}  ${this.paint("yellow", "invalid")}: ${printable(event.reason)}` +
            (event.willRetry ? "; trying again" : "; given up"),
        );
        break;
      case "waiting": {
        const parts = [`${this.position} ${this.variant}`, printable(event.text)];
        if (this.stream.isTTY) this.showLine(parts);
        else this.print(joined(parts));
        break;
      }
      case "variant-finished":
        this.clock.variantFinished();
        this.print(`${this.position} ${this.paint("bold", this.variant)}  ${outcomeText(event.outcome)}`);
        break;
    }
  }

  /** From now on the live line says what the sweep has cost, US dollars. */
  showCost(costUsd: () => number): void {
    this.costUsd = costUsd;
  }

  /** A lasting line, e.g. a note about the results folder. */
  note(text: string): void {
    this.print(printable(text));
  }

  /** Removes the live line. */
  close(): void {
    if (this.lineShown) this.stream.write(clearLine);
    this.lineShown = false;
  }

  private warmUpParts({ progress }: Extract<SweepEvent, { kind: "warming-up" }>): string[] {
    const { elapsedS, p95Ms } = progress;
    const p95 = p95Ms === null ? "no answer yet" : `p95 ${formatMs(p95Ms)}`;
    return [
      `${this.position} ${this.variant}`,
      `warm-up ${elapsedS.toFixed(0)} s`,
      `${p95}, until it settles`,
    ];
  }

  private showProgress({ spec, progress }: Extract<SweepEvent, { kind: "trial-progress" }>): void {
    this.showLine([
      ...this.trialParts(spec),
      `${Math.min(progress.elapsedS, progress.totalS).toFixed(0)}/${progress.totalS.toFixed(0)} s`,
      `now ${formatRate(progress.ratePerS)}/s`,
      `p95 ${formatMs(progress.p95Ms)}`,
      this.cost(),
      this.lastVerdict && `last: ${this.lastVerdict}`,
      this.timeLeft(),
    ]);
  }

  private trialFinished({ spec, result, fromLog }: Extract<SweepEvent, { kind: "trial-finished" }>): void {
    if (!fromLog) this.clock.trialMeasured();
    const judged = judge(spec, result);
    this.lastVerdict = judged.verdict;
    // The throughput of a closed-loop probe is no offered rate and narrows nothing.
    const narrows = !(spec.purpose === "probe" && spec.shape.kind === "users");
    if (narrows && judged.verdict === "pass")
      this.highestPass = Math.max(this.highestPass ?? 0, judged.ratePerS);
    if (narrows && judged.verdict === "fail")
      this.lowestFail = Math.min(this.lowestFail ?? Infinity, judged.ratePerS);
    if (this.stream.isTTY) return;
    const parts = [
      ...this.trialParts(spec),
      spec.shape.kind === "users" ? `${formatRate(judged.ratePerS)}/s` : null,
      `p95 ${formatMs(result.load.response.p95Ms)}`,
      `missed ${formatShare(judged.missShare.estimate, 1)}`,
      this.paint(verdictStyle[judged.verdict] ?? "dim", judged.verdict),
      this.cost(),
      fromLog ? "(from the point log)" : this.timeLeft(),
    ];
    this.print(joined(parts));
  }

  /** Which trial, and between which rates the limit lies so far. */
  private trialParts(spec: TrialSpec): string[] {
    const { shape } = spec;
    const load = shape.kind === "users" ? `${shape.users} users` : `${formatRate(shape.ratePerS)}/s`;
    const low = this.highestPass === null ? "" : formatRate(this.highestPass);
    const high = this.lowestFail === null ? "" : formatRate(this.lowestFail);
    const bracket = low || high ? [`limit in ${low || "?"}..${high || "?"}`] : [];
    return [`${this.position} ${this.variant}`, `${spec.purpose} ${load}`, ...bracket];
  }

  private cost(): string | null {
    return this.costUsd && formatUsd(this.costUsd());
  }

  private timeLeft(): string | null {
    const leftS = this.clock.leftS();
    return leftS === null || leftS < 1 ? null : `about ${formatDuration(leftS)} left`;
  }

  /** Writes the live line, without the parts that do not fit. */
  private showLine(parts: readonly (string | null)[]): void {
    const room = (this.stream.columns ?? defaultColumns) - 1;
    const fitting = parts.filter((part) => part !== null);
    while (fitting.length > 1 && joined(fitting).length > room) fitting.pop();
    this.stream.write(clearLine + plainSpaces(joined(fitting).slice(0, room)));
    this.lineShown = true;
  }

  private print(text: string): void {
    this.close();
    this.stream.write(`${plainSpaces(text)}\n`);
  }
}

function outcomeText({ sloRate, operatingRate, diagnosis, note }: VariantOutcome): string {
  if (!sloRate) return printable(`no SLO rate${note === null ? "" : `: ${note}`}`);
  const interval = `${formatRate(sloRate.low)}..${formatRate(sloRate.high)}`;
  return `SLO rate ${formatRate(sloRate.estimate)}/s (${interval}), run at ${formatRate(operatingRate)}, ${diagnosis.cause}`;
}

function joined(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null).join("  ");
}

function plainSpaces(text: string): string {
  return text.replaceAll("\u00a0", " ");
}
