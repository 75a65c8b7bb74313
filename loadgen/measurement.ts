/** One measurement as one worker runs it: prepare, start at the barrier, report, end. */
import { createTransport } from "./create-transport";
import { HealthMonitor } from "./health-monitor";
import { ImageError } from "./image-tensor";
import type { PayloadSource } from "./payloads";
import type { Prepare, PrepareFailed, WindowHealth } from "./protocol";
import { errorKind, RequestSender } from "./request-sender";
import type { LoadProfile } from "./load-profile";
import { LivePlan } from "./live-plan";
import { SendLoop } from "./send-loop";
import { INTERVAL_S } from "./slo-counter";
import type { Transport } from "./transport";
import { createProcessTime } from "./wake-timer";

/** Uncounted requests a connection before the load: code paths and the server's first-request work are then warm. */
const WARM_REQUESTS = 2;
/** Deadline of those, milliseconds: a first request may wait for engines to be built. */
const WARM_DEADLINE_MS = 30_000;

/** Longest time that a timer can wait, milliseconds: a window may end later, but then it is ended by its owner before. */
const MAX_TIMER_MS = 2 ** 31 - 1;

type LoopHealth = Omit<WindowHealth, "latenessP50Ms" | "busyWaitMs">;

/** The measurement cannot start. */
export class PrepareError extends Error {
  override readonly name = "PrepareError";

  constructor(
    /** True when the spec is to blame, false when the system under test is. */
    readonly isBadSpec: PrepareFailed["isBadSpec"],
    message: string,
  ) {
    super(message);
  }
}

export class Measurement {
  readonly loop: SendLoop;
  private readonly sender: RequestSender;
  private readonly plan: LivePlan;
  private readonly monitor: HealthMonitor;
  private readonly timers = new Set<NodeJS.Timeout>();
  private windowHealth: LoopHealth | undefined;
  private sampledIntervals = 0;
  private hasBegun = false;
  /** Where the measured window was ended early, model seconds. */
  private endS = Infinity;

  private constructor(
    private readonly assignment: Prepare,
    private readonly transports: readonly { address: string; transport: Transport }[],
    payloadBytes: readonly number[],
    busyWaitMs: number,
  ) {
    const { spec, workerIndex, workerCount, maxInFlight } = assignment;
    this.sender = new RequestSender({ ...spec, transports, payloadBytes, workerIndex });
    this.monitor = new HealthMonitor(() => this.sender.bytesSent);
    this.plan = new LivePlan(spec.shape, spec.seed, { index: workerIndex, count: workerCount });
    this.loop = new SendLoop({
      ...spec,
      plan: this.plan,
      time: createProcessTime(busyWaitMs),
      send: (deadlineMs) => this.sender.send(deadlineMs),
      maxInFlight,
    });
  }

  /**
   * Decodes the images, connects and warms up.
   * @param busyWaitMs how long the send loop waits awake for a planned send, milliseconds
   * @throws PrepareError
   */
  static async prepare(
    assignment: Prepare,
    source: PayloadSource,
    signal: AbortSignal,
    busyWaitMs: number,
  ): Promise<Measurement> {
    const { spec } = assignment;
    const payloads = await loadPayloads(source, assignment);
    const connections = spec.connectionsPerAddress;
    const transports = spec.addresses.map((address) => ({
      address,
      transport: createTransport(spec.transport, {
        ...{ address, payloads, connections },
        newConnectionPerRequest: spec.newConnectionPerRequest,
        tls: spec.tls,
      }),
    }));
    try {
      await Promise.all(transports.map(({ transport }) => transport.connect()));
      await Promise.all(transports.map(({ address, transport }) => warm(address, transport, connections)));
      signal.throwIfAborted();
      return new Measurement(
        assignment,
        transports,
        payloads.map(({ length }) => length),
        busyWaitMs,
      );
    } catch (error) {
      await Promise.all(transports.map(({ transport }) => transport.close()));
      if (signal.aborted || error instanceof PrepareError) throw error;
      throw new PrepareError(false, (error as Error).message);
    }
  }

  /** Megabytes sent per second of wall time, over the measured window or its part so far. */
  wireMbPerS(): number {
    return this.monitor.read().wireMbPerS;
  }

  /** Message bytes of all requests so far, warm-up included. */
  get bytesSent(): number {
    return this.sender.bytesSent;
  }

  /** The load has begun, or is about to. */
  get isSending(): boolean {
    return this.hasBegun;
  }

  get runId(): string {
    return this.assignment.runId;
  }

  /** Starts the load in `inMs` from now; resolves with the health over the window when every measured request has ended. */
  async run(inMs: number): Promise<LoopHealth> {
    const { spec } = this.assignment;
    this.hasBegun = true;
    const startMs = performance.now() + inMs;
    const done = this.loop.run(startMs);
    const windowEndS = spec.warmupS + spec.measureS;
    this.at(this.loop.wallMs(spec.warmupS), () => this.monitor.restart());
    this.sampleAtEndOf(0);
    this.at(this.loop.wallMs(windowEndS), () => (this.windowHealth ??= this.monitor.read()));
    await done;
    // The last reply may be read right before the timers of the window's end.
    const measured = Math.ceil((Math.min(this.endS, windowEndS) - spec.warmupS) / INTERVAL_S - 1e-9);
    while (this.sampledIntervals < measured) this.sampleInFlight(this.sampledIntervals);
    return this.windowHealth ?? this.monitor.read();
  }

  /** Ends the measured window at a model time, as if it had been planned so. */
  stopAt(atS: number): void {
    this.endS = Math.min(this.endS, atS);
    this.loop.endAt(atS);
    this.at(this.loop.wallMs(atS), () => (this.windowHealth ??= this.monitor.read()));
  }

  /** Another load from a model time on. */
  change(shape: LoadProfile, atS: number): void {
    this.at(this.loop.wallMs(atS), () => {
      this.plan.change(shape, atS);
      this.loop.replanned();
    });
  }

  /** Ends the load, if it runs, and closes the connections: what is in flight is cancelled. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearTimeout(timer);
    this.loop.stop();
    this.monitor.stop();
    await Promise.all(this.transports.map(({ transport }) => transport.close()));
  }

  /** Samples at the ends of the intervals from this one on. */
  private sampleAtEndOf(index: number): void {
    const { warmupS, measureS } = this.assignment.spec;
    const startS = warmupS + index * INTERVAL_S;
    const windowEndS = Math.min(this.endS, warmupS + measureS);
    if (startS >= windowEndS - 1e-9) return;
    this.at(this.loop.wallMs(Math.min(windowEndS, startS + INTERVAL_S)), () => {
      this.sampleInFlight(index);
      this.sampleAtEndOf(index + 1);
    });
  }

  private sampleInFlight(index: number): void {
    if (index < this.sampledIntervals) return;
    this.sampledIntervals = index + 1;
    this.loop.measured.slo.addInFlight(index, this.loop.inFlight);
  }

  private at(atMs: number, act: () => void): void {
    const timer = setTimeout(
      () => {
        this.timers.delete(timer);
        act();
      },
      Math.min(atMs - performance.now(), MAX_TIMER_MS),
    );
    this.timers.add(timer);
  }
}

async function loadPayloads(source: PayloadSource, { spec }: Prepare): Promise<Buffer[]> {
  let payloads: Buffer[];
  try {
    payloads = await source.load(spec);
  } catch (error) {
    if (error instanceof ImageError) throw new PrepareError(true, error.message);
    throw error;
  }
  const answers = spec.knownAnswers?.length ?? payloads.length;
  if (answers !== payloads.length)
    throw new PrepareError(
      true,
      `knownAnswers has ${answers} entries, but ${spec.imageFolder} has ${payloads.length} images: one an image is needed`,
    );
  return payloads;
}

async function warm(address: string, transport: Transport, connections: number): Promise<void> {
  const outcomes = await Promise.all(
    Array.from({ length: WARM_REQUESTS * connections }, () => transport.infer(0, WARM_DEADLINE_MS)),
  );
  const failed = outcomes.find(({ status }) => status !== 0);
  if (failed !== undefined)
    throw new PrepareError(
      false,
      `${address} failed a warm-up request: ${errorKind(failed.status, failed.message)} ${failed.message}`.trim(),
    );
}
