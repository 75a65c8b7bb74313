/**
 * A load worker: keeps a stream to the controller, runs the measurements that it is given, and reports. It loses a measurement together
 * with the stream it came on, and comes back with growing pauses when the controller is gone.
 */
import { randomUUID } from "node:crypto";
import { availableParallelism } from "node:os";
import { Client, credentials, Metadata, type ClientDuplexStream } from "@grpc/grpc-js";
import { Histogram } from "./histogram";
import { HealthMonitor } from "./health-monitor";
import { Measurement, PrepareError } from "./measurement";
import { PayloadSource } from "./payloads";
import {
  loadControlService,
  PROTOCOL_VERSION,
  type ControllerMessage,
  type Heartbeat,
  type Prepare,
  type WorkerMessage,
} from "./protocol";
import { Tally } from "./tally";

/** Pause between two reports of a running measurement, and between two heartbeats, milliseconds. */
export const REPORT_EVERY_MS = 1000;
const KEEPALIVE_MS = 10_000;
/** Largest message from the controller, bytes: a recording of a million arrivals is 8 MB. */
const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5000;
/** The controller has this long to read the last words, milliseconds. */
const FAREWELL_MS = 1000;

export interface WorkerOptions {
  /** host:port of the controller. */
  readonly controller: string;
  /** Unique among the controller's workers. */
  readonly name: string;
  /** Secret that controller and workers share. */
  readonly token: string;
  /** The send loop waits awake for a planned send this long, milliseconds; 0: not at all (default). */
  readonly busyWaitMs?: number;
  /** One line a change of state. */
  readonly log?: (line: string) => void;
}

type Stream = ClientDuplexStream<WorkerMessage, ControllerMessage>;

/** A measurement and where it stands. */
interface CurrentRun {
  readonly assignment: Prepare;
  readonly abort: AbortController;
  measurement: Measurement | undefined;
  sequence: number;
  planned: number;
  /** Bytes that deltas have reported. */
  sentBytes: number;
  /** Lateness of the measured requests that deltas have reported. */
  readonly lateness: Histogram;
  /** Called when it is over. */
  onEnd: () => void;
}

export class LoadWorker {
  private readonly client: Client;
  private readonly instanceId = randomUUID();
  private readonly payloads = new PayloadSource();
  private readonly heartbeatHealth = new HealthMonitor(() => 0);
  private readonly heartbeatTimer: NodeJS.Timeout;
  /** Of the last heartbeat, on the monotonic clock. */
  private reportedMs = performance.now();
  private stream: Stream | undefined;
  private run: CurrentRun | undefined;
  private backoffMs = FIRST_BACKOFF_MS;
  private reconnectTimer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(private readonly options: WorkerOptions) {
    this.client = new Client(options.controller, credentials.createInsecure(), {
      "grpc.initial_reconnect_backoff_ms": FIRST_BACKOFF_MS,
      "grpc.max_reconnect_backoff_ms": MAX_BACKOFF_MS,
      "grpc.service_config_disable_resolution": 1,
      // A controller that vanished without a word (a node that died) is noticed.
      "grpc.keepalive_time_ms": KEEPALIVE_MS,
      "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    });
    this.heartbeatTimer = setInterval(() => this.report(), REPORT_EVERY_MS);
    this.connect();
  }

  /**
   * Leaves in order: a load that it is sending is ended early by the controller, its answers are awaited for `graceMs` at most and reported;
   * then as `stop`.
   */
  async leave(reason: string, graceMs: number): Promise<void> {
    const { run } = this;
    if (run?.measurement?.isSending === true) {
      const ended = new Promise<void>((resolve) => (run.onEnd = resolve));
      this.say({ body: "leaving", leaving: { reason } });
      await within(graceMs, ended);
    }
    await this.stop();
  }

  /** Leaves the controller; a running measurement loses this worker, after what it has counted so far. */
  async stop(): Promise<void> {
    if (this.stopped) return;
    this.stopped = true;
    clearInterval(this.heartbeatTimer);
    clearTimeout(this.reconnectTimer);
    this.heartbeatHealth.stop();
    if (this.run?.measurement?.isSending === true) this.sendDelta(this.run);
    await this.endRun();
    const { stream } = this;
    if (stream !== undefined) {
      stream.end();
      // A process that exits now would take along what is not written yet.
      await within(FAREWELL_MS, new Promise<void>((resolve) => stream.once("status", () => resolve())));
    }
    this.client.close();
  }

  private connect(): void {
    const { path, requestSerialize, responseDeserialize } = loadControlService().Work;
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${this.options.token}`);
    const stream: Stream = this.client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
    );
    this.stream = stream;
    stream.on("data", (message: ControllerMessage) => this.onMessage(message));
    stream.on("error", (error) => this.onLost(stream, error.message));
    stream.on("end", () => this.onLost(stream, "the controller ended the stream"));
    this.say({
      body: "register",
      register: {
        name: this.options.name,
        instanceId: this.instanceId,
        protocolVersion: PROTOCOL_VERSION,
        pid: process.pid,
        cores: availableParallelism(),
      },
    });
  }

  private onLost(stream: Stream, reason: string): void {
    if (this.stream !== stream) return;
    this.stream = undefined;
    stream.cancel();
    void this.endRun();
    if (this.stopped) return;
    this.options.log?.(
      `controller ${this.options.controller}: ${reason}; next attempt in ${this.backoffMs} ms`,
    );
    this.reconnectTimer = setTimeout(() => this.connect(), this.backoffMs);
    this.backoffMs = Math.min(MAX_BACKOFF_MS, 2 * this.backoffMs);
  }

  private onMessage(message: ControllerMessage): void {
    switch (message.body) {
      case "registered":
        this.backoffMs = FIRST_BACKOFF_MS;
        this.options.log?.(
          `registered as ${this.options.name}, controller epoch ${message.registered.epoch}`,
        );
        return;
      case "prepare":
        return void this.prepare(message.prepare);
      case "start":
        if (message.start.runId === this.run?.assignment.runId) void this.start(this.run, message.start.inMs);
        return;
      case "stop":
        if (message.stop.runId === this.run?.assignment.runId) this.run.measurement?.stopAt(message.stop.atS);
        return;
      case "change":
        if (message.change.runId === this.run?.assignment.runId)
          this.run.measurement?.change(message.change.spec.shape, message.change.atS);
        return;
      case "abort":
        if (message.abort.runId === this.run?.assignment.runId) void this.endRun();
        return;
    }
  }

  private async prepare(assignment: Prepare): Promise<void> {
    await this.endRun();
    const abort = new AbortController();
    const run: CurrentRun = {
      assignment,
      abort,
      measurement: undefined,
      sequence: 0,
      planned: 0,
      sentBytes: 0,
      lateness: new Histogram(),
      onEnd: () => undefined,
    };
    this.run = run;
    const { runId } = assignment;
    try {
      const measurement = await Measurement.prepare(
        assignment,
        this.payloads,
        abort.signal,
        this.options.busyWaitMs ?? 0,
      );
      if (this.run !== run) return void measurement.close();
      run.measurement = measurement;
      this.say({ body: "prepared", prepared: { runId } });
    } catch (error) {
      if (this.run !== run) return;
      this.run = undefined;
      const isBadSpec = !(error instanceof PrepareError) || error.isBadSpec;
      const { message } = error as Error;
      this.say({ body: "prepareFailed", prepareFailed: { runId, isBadSpec, message } });
    }
  }

  private async start(run: CurrentRun, inMs: number): Promise<void> {
    const { measurement } = run;
    if (measurement === undefined) return;
    const health = await measurement.run(inMs);
    if (this.run !== run) return;
    this.sendDelta(run);
    const { sequence: lastSequence, planned, lateness } = run;
    const latenessP50Ms = lateness.count === 0 ? 0 : lateness.percentileUs(0.5) / 1000;
    const { busyWaitMs = 0 } = this.options;
    this.say({
      body: "done",
      done: {
        runId: run.assignment.runId,
        lastSequence,
        planned,
        health: { ...health, latenessP50Ms, busyWaitMs },
      },
    });
    await this.endRun();
  }

  private async endRun(): Promise<void> {
    const { run } = this;
    this.run = undefined;
    run?.abort.abort(new Error("the measurement was aborted"));
    await run?.measurement?.close();
    run?.onEnd();
  }

  private report(): void {
    const { run } = this;
    const loop = run?.measurement?.loop;
    const lateness = loop?.measured.lateness;
    const { loopDelayP99Ms, cpuShare, busyWaitShare } = this.heartbeatHealth.read();
    this.heartbeatHealth.restart();
    // What the tallies hold was sent since they were last reported and cleared, which was then.
    const sent = loop === undefined ? 0 : loop.measured.lateness.count + loop.warmup.lateness.count;
    const nowMs = performance.now();
    const ratePerS = (sent * 1000) / Math.max(1, nowMs - this.reportedMs);
    this.reportedMs = nowMs;
    const heartbeat: Heartbeat = {
      runId: run?.assignment.runId ?? "",
      inFlight: loop?.inFlight ?? 0,
      latenessP99Ms: lateness === undefined || lateness.count === 0 ? 0 : lateness.percentileUs(0.99) / 1000,
      loopDelayP99Ms,
      cpuShare,
      busyWaitShare,
      wireMbPerS: run?.measurement?.wireMbPerS() ?? 0,
      rssMb: process.memoryUsage.rss() / 1e6,
      ratePerS,
    };
    if (run !== undefined && loop !== undefined) this.sendDelta(run, heartbeat);
    else this.say({ body: "heartbeat", heartbeat });
  }

  private sendDelta(run: CurrentRun, heartbeat: Heartbeat | null = null): void {
    const { loop, runId, bytesSent } = run.measurement!;
    const sentBytes = bytesSent - run.sentBytes;
    run.sentBytes = bytesSent;
    const { measured, warmup } = loop;
    run.planned += measured.slo.total().planned;
    run.lateness.merge(measured.lateness);
    run.sequence++;
    this.say({
      body: "delta",
      delta: {
        ...{ runId, sequence: run.sequence, sentBytes },
        ...{ measured: measured.toMessage(), warmup: warmup.toMessage() },
        heartbeat,
      },
    });
    for (const tally of [measured, warmup] satisfies Tally[]) tally.clear();
  }

  private say(message: WorkerMessage): void {
    if (this.stream?.writable === true) this.stream.write(message);
  }
}

/** Waits for a promise, but no longer than this. */
async function within(ms: number, promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([promise, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
