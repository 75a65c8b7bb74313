/** Everything that is counted about requests. Tallies of workers and of intervals merge by addition, exactly. */
import { Histogram, type SparseHistogram } from "./histogram";
import { SloCounter, type Ending, type IntervalSums } from "./slo-counter";

/** A tally as it travels: only what is not zero. */
export interface TallyMessage {
  readonly intervals: readonly IntervalSums[];
  readonly response: SparseHistogram;
  readonly service: SparseHistogram;
  readonly lateness: SparseHistogram;
  /** Planned requests that were sent, or shed by the cap, before the measured window ended. */
  readonly onTimeSends: number;
  readonly errors: readonly ErrorCount[];
  readonly perAddress: readonly AddressCount[];
}

export interface ErrorCount {
  /** Class, e.g. `UNAVAILABLE` or `wrong-answer`. */
  readonly kind: string;
  readonly count: number;
  /** The first message of this class. */
  readonly message: string;
}

export interface AddressCount {
  readonly address: string;
  /** Answered requests. */
  readonly answered: number;
}

/** One ended request. All times undilated, microseconds. */
export interface EndedRequest {
  readonly interval: number;
  readonly ending: Exclude<Ending, "shed">;
  /** From the planned send. */
  readonly responseUs: number;
  /** From the real send. */
  readonly serviceUs: number;
  readonly address: string;
  /** Class and message of the error; undefined when it did not fail. */
  readonly error: { readonly kind: string; readonly message: string } | undefined;
}

export class Tally {
  readonly slo = new SloCounter();
  /** Times of correctly answered requests, ok and late. */
  readonly response = new Histogram();
  readonly service = new Histogram();
  /** Real minus planned send, of all requests sent. */
  readonly lateness = new Histogram();
  private onTime = 0;
  private readonly errorCounts = new Map<string, { count: number; message: string }>();
  private readonly answered = new Map<string, number>();

  get onTimeSends(): number {
    return this.onTime;
  }

  sent(latenessUs: number, beforeWindowEnd: boolean): void {
    this.lateness.record(latenessUs);
    if (beforeWindowEnd) this.onTime++;
  }

  shed(interval: number, beforeWindowEnd: boolean): void {
    this.slo.add(interval, "shed");
    if (beforeWindowEnd) this.onTime++;
  }

  ended(request: EndedRequest): void {
    this.slo.add(request.interval, request.ending, request.responseUs);
    if (request.error !== undefined) this.addError(request.error.kind, 1, request.error.message);
    if (request.ending === "failed") return;
    this.response.record(request.responseUs);
    this.service.record(request.serviceUs);
    this.addAnswered(request.address, 1);
  }

  /** @throws RangeError if the message is no tally */
  mergeMessage(message: TallyMessage): void {
    this.response.mergeSparse(message.response);
    this.service.mergeSparse(message.service);
    this.lateness.mergeSparse(message.lateness);
    this.slo.merge(message.intervals);
    this.onTime += message.onTimeSends;
    for (const { kind, count, message: text } of message.errors) this.addError(kind, count, text);
    for (const { address, answered } of message.perAddress) this.addAnswered(address, answered);
  }

  toMessage(): TallyMessage {
    return {
      intervals: this.slo.sums(),
      response: this.response.toSparse(),
      service: this.service.toSparse(),
      lateness: this.lateness.toSparse(),
      onTimeSends: this.onTime,
      errors: [...this.errorCounts].map(([kind, { count, message }]) => ({ kind, count, message })),
      perAddress: [...this.answered].map(([address, answered]) => ({ address, answered })),
    };
  }

  /** Answered requests by address. */
  perAddress(): Record<string, number> {
    return Object.fromEntries(this.answered);
  }

  /** Errors by class. */
  errors(): Record<string, number> {
    return Object.fromEntries([...this.errorCounts].map(([kind, { count }]) => [kind, count]));
  }

  /** The first message of each class of errors. */
  errorMessages(): Record<string, string> {
    return Object.fromEntries([...this.errorCounts].map(([kind, { message }]) => [kind, message]));
  }

  clear(): void {
    this.slo.clear();
    for (const histogram of [this.response, this.service, this.lateness]) histogram.clear();
    this.onTime = 0;
    this.errorCounts.clear();
    this.answered.clear();
  }

  private addError(kind: string, count: number, message: string): void {
    const known = this.errorCounts.get(kind);
    if (known === undefined) this.errorCounts.set(kind, { count, message });
    else known.count += count;
  }

  private addAnswered(address: string, count: number): void {
    this.answered.set(address, (this.answered.get(address) ?? 0) + count);
  }
}
