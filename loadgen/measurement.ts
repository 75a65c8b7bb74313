/** One measurement as one worker runs it: prepare, start at the barrier, report, end. */
import { createTransport } from "./create-transport";
import { HealthMonitor } from "./health-monitor";
import { ImageError } from "./image-tensor";
import type { PayloadSource } from "./payloads";
import type { Prepare, PrepareFailed, WindowHealth } from "./protocol";
import { errorKind, RequestSender } from "./request-sender";
import { createPlan } from "./schedule";
import { SendLoop } from "./send-loop";
import { INTERVAL_S } from "./slo-counter";
import type { Transport } from "./transport";
import { processTime } from "./wake-timer";

/** Uncounted requests a connection before the load: code paths and the server's first-request work are then warm. */
const WARM_REQUESTS = 2;
/** Deadline of those, milliseconds: a first request may wait for engines to be built. */
const WARM_DEADLINE_MS = 30_000;

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
  private readonly monitor: HealthMonitor;
  private readonly timers: NodeJS.Timeout[] = [];
  private windowHealth: WindowHealth | undefined;
  private sampledIntervals = 0;

  private constructor(
    private readonly assignment: Prepare,
    private readonly transports: readonly { address: string; transport: Transport }[],
    payloadBytes: readonly number[],
  ) {
    const { spec, workerIndex, workerCount, maxInFlight } = assignment;
    this.sender = new RequestSender({ ...spec, transports, payloadBytes, workerIndex });
    this.monitor = new HealthMonitor(() => this.sender.bytesSent);
    this.loop = new SendLoop({
      ...spec,
      plan: createPlan(spec.shape, spec.seed, { index: workerIndex, count: workerCount }),
      time: processTime,
      send: (deadlineMs) => this.sender.send(deadlineMs),
      maxInFlight,
    });
  }

  /**
   * Decodes the images, connects and warms up.
   * @throws PrepareError
   */
  static async prepare(
    assignment: Prepare,
    source: PayloadSource,
    signal: AbortSignal,
  ): Promise<Measurement> {
    const { spec } = assignment;
    const payloads = await loadPayloads(source, assignment);
    const connections = spec.connectionsPerAddress;
    const transports = spec.addresses.map((address) => ({
      address,
      transport: createTransport(spec.transport, { address, payloads, connections }),
    }));
    try {
      await Promise.all(transports.map(({ transport }) => transport.connect()));
      await Promise.all(transports.map(({ address, transport }) => warm(address, transport, connections)));
      signal.throwIfAborted();
      return new Measurement(
        assignment,
        transports,
        payloads.map(({ length }) => length),
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

  get runId(): string {
    return this.assignment.runId;
  }

  /** Starts the load in `inMs` from now; resolves with the health over the window when every measured request has ended. */
  async run(inMs: number): Promise<WindowHealth> {
    const { spec } = this.assignment;
    const startMs = performance.now() + inMs;
    const done = this.loop.run(startMs);
    const windowEndS = spec.warmupS + spec.measureS;
    const intervals = Math.ceil(spec.measureS / INTERVAL_S - 1e-9);
    this.at(this.loop.wallMs(spec.warmupS), () => this.monitor.restart());
    for (let index = 0; index < intervals; index++) {
      const endS = Math.min(windowEndS, spec.warmupS + (index + 1) * INTERVAL_S);
      this.at(this.loop.wallMs(endS), () => this.sampleInFlight(index));
    }
    this.at(this.loop.wallMs(windowEndS), () => (this.windowHealth = this.monitor.read()));
    await done;
    // The last reply may be read right before the timers of the window's end.
    while (this.sampledIntervals < intervals) this.sampleInFlight(this.sampledIntervals);
    return this.windowHealth ?? this.monitor.read();
  }

  /** Ends the load, if it runs, and closes the connections: what is in flight is cancelled. */
  async close(): Promise<void> {
    for (const timer of this.timers) clearTimeout(timer);
    this.loop.stop();
    this.monitor.stop();
    await Promise.all(this.transports.map(({ transport }) => transport.close()));
  }

  private sampleInFlight(index: number): void {
    if (index < this.sampledIntervals) return;
    this.sampledIntervals = index + 1;
    this.loop.measured.slo.addInFlight(index, this.loop.inFlight);
  }

  private at(atMs: number, act: () => void): void {
    this.timers.push(setTimeout(act, atMs - performance.now()));
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
