import { Histogram } from "./histogram";

/** How often the event loop is probed, wall milliseconds. */
const PROBE_MS = 10;

/**
 * Is the machine fast enough for what it simulates? Both figures are in model time, so that they compare with the SLO bound.
 * A trial whose server was late or blocked was limited by the host and says nothing about the variant.
 */
export class HostHealth {
  /** Real minus planned departure of answers, model microseconds; one value an execution. */
  readonly latenessUs = new Histogram();
  /** How much later than planned a timer of the event loop fires, model microseconds; probed every 10 ms of wall time. */
  readonly loopDelayUs = new Histogram();
  private readonly cpuAtStart = process.cpuUsage();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly dilation: number) {}

  start(): void {
    let planned = performance.now() + PROBE_MS;
    const probe = (): void => {
      const now = performance.now();
      this.loopDelayUs.record((Math.max(0, now - planned) * 1000) / this.dilation);
      planned = now + PROBE_MS;
      this.timer = setTimeout(probe, PROBE_MS).unref();
    };
    this.timer = setTimeout(probe, PROBE_MS).unref();
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
  }

  lateness(latenessUs: number): void {
    this.latenessUs.record(Math.max(0, latenessUs));
  }

  /** CPU time of this process since its start, wall seconds. */
  get cpuSeconds(): number {
    const { user, system } = process.cpuUsage(this.cpuAtStart);
    return (user + system) / 1e6;
  }
}
