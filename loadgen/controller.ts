/** The load generator's controller: workers register here, and measurements are run over all of them. */
import { randomUUID, timingSafeEqual } from "node:crypto";
import { Metadata, Server, ServerCredentials, status, type ServerErrorResponse } from "@grpc/grpc-js";
import { checkChange, checkLoadSpec, LoadSpecError } from "./check-spec";
import { registerProblem } from "./check-words";
import { ControllerRun, InterruptedError, type MeasurementObserver } from "./controller-run";
import type { LoadProfile } from "./load-profile";
import type { LoadClient, LoadProgress, LoadResult, LoadSpec } from "./load-spec";
import {
  loadControlService,
  PROTOCOL_VERSION,
  type Heartbeat,
  type Register,
  type WorkerMessage,
} from "./protocol";
import { checkLimits, limitedShape, noLimits, resolveTargets, type LoadLimits } from "./targets";
import { HEARTBEAT_TIMEOUT_MS, WorkerSession, type WorkerStream } from "./worker-session";

/** Results that are kept for a repeated id. */
const KEPT_RESULTS = 1000;
/** Largest message from a worker, bytes: a delta with every bucket of its histograms in use is about 1 MB. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
/** A connection without a stream is closed after this: every worker has one, strangers shall not collect. */
const MAX_IDLE_MS = 30_000;

export interface ControllerOptions {
  /** Secret that every worker must bring. Not empty. */
  readonly token: string;
  /** Address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** 0 (the default): a free port. */
  readonly port?: number;
  /** Called for every worker that registers. */
  readonly onRegister?: (worker: Register) => void;
  readonly observer?: MeasurementObserver;
  /** Default: none. */
  readonly limits?: LoadLimits;
}

/** What is known about a registered worker. */
export interface WorkerInfo extends Register {
  /** The newest one; undefined before the first. */
  readonly heartbeat: Heartbeat | undefined;
}

export class Controller implements LoadClient {
  /** Random, one per controller: workers see by it that this is not the one they knew. */
  readonly epoch = randomUUID();
  private readonly sessions = new Map<string, WorkerSession>();
  private readonly results = new Map<string, Promise<LoadResult>>();
  private readonly waiters = new Set<() => void>();
  private isRunning = false;
  private current: { readonly spec: LoadSpec; readonly run: ControllerRun } | undefined;
  private boundPort = 0;
  private endingBecause: string | undefined;

  private constructor(
    private readonly server: Server,
    private readonly token: Buffer,
    private readonly onRegister: ControllerOptions["onRegister"],
    private readonly observer: MeasurementObserver | undefined,
    readonly limits: LoadLimits,
  ) {}

  /** @throws RangeError for an empty token, Error naming the address when it cannot be listened on */
  static async listen(options: ControllerOptions): Promise<Controller> {
    const { token, host = "127.0.0.1", port = 0, onRegister, observer, limits = noLimits } = options;
    if (token === "") throw new RangeError("the controller needs a token that is not empty");
    const server = new Server({
      "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
      "grpc.max_connection_idle_ms": MAX_IDLE_MS,
    });
    const controller = new Controller(server, Buffer.from(`Bearer ${token}`), onRegister, observer, limits);
    server.addService(loadControlService(), {
      Work: (stream: WorkerStream) => controller.onStream(stream),
    });
    controller.boundPort = await new Promise<number>((resolve, reject) =>
      server.bindAsync(`${host}:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
        error === null
          ? resolve(bound)
          : reject(new Error(`the load controller cannot listen on ${host}:${port}: ${error.message}`)),
      ),
    );
    return controller;
  }

  get port(): number {
    return this.boundPort;
  }

  /** After `end`: no measurement is begun any more. */
  get isEnding(): boolean {
    return this.endingBecause !== undefined;
  }

  /** Those that take part in the next measurement. */
  workers(): WorkerInfo[] {
    return [...this.sessions.values()].map(({ register, heartbeat }) => ({ ...register, heartbeat }));
  }

  /** Resolves when at least `count` workers are registered. @throws Error after `timeoutMs` */
  async waitForWorkers(count: number, timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs;
    while (this.sessions.size < count) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0)
        throw new Error(
          `${this.sessions.size} of ${count} load workers are registered after ${timeoutMs} ms`,
        );
      await this.nextRegistration(leftMs);
    }
  }

  /**
   * Runs one measurement over all registered workers; one at a time. A lost worker or a target that cannot be reached gives an invalid
   * result. A repeated id gives the first one's result.
   * @throws LoadSpecError for a bad spec; Error without workers, or while another measurement runs; the signal's reason; InterruptedError
   *   when `end` comes before the load
   */
  run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult> {
    const known = this.results.get(spec.id);
    if (known !== undefined) return known;
    const result = this.start(spec, onProgress, signal);
    this.results.set(spec.id, result);
    // A measurement that could not be run may be tried again under its id.
    result.catch(() => this.results.delete(spec.id));
    const [oldest] = this.results.keys();
    if (this.results.size > KEPT_RESULTS && oldest !== undefined) this.results.delete(oldest);
    return result;
  }

  /** Ends the running measurement in a moment, with a result; false when none of this id is under load. */
  stop(id: string, reason: string): boolean {
    return this.current?.spec.id === id && this.current.run.stop(reason);
  }

  /** Ends a measurement whose load has not begun yet: it rejects with InterruptedError. False when none of this id is being prepared. */
  cancel(id: string, reason: string): boolean {
    return this.current?.spec.id === id && this.current.run.cancel(reason);
  }

  /** Changes the load of the running measurement; false when none of this id is under load. @throws LoadSpecError */
  change(id: string, shape: LoadProfile): boolean {
    if (this.current?.spec.id !== id) return false;
    const { spec, run } = this.current;
    checkLimits({ ...spec, shape }, this.limits);
    checkChange(spec, shape);
    return run.change(limitedShape(shape, this.limits));
  }

  /**
   * Begins no measurement any more, and ends the running one early, so that what it has measured is kept: see `ControllerRun.interrupt`.
   * Resolves when its result is there; answers are awaited for `graceMs` at most. Called again, the shorter time counts.
   * @returns whether a measurement was running
   */
  async end(reason: string, graceMs: number): Promise<boolean> {
    this.endingBecause ??= reason;
    const { current } = this;
    if (current === undefined) return false;
    const ended = this.results.get(current.spec.id)?.catch(() => undefined);
    current.run.interrupt(reason);
    const timer = setTimeout(() => current.run.conclude(), graceMs);
    await ended;
    clearTimeout(timer);
    return true;
  }

  async close(): Promise<void> {
    for (const session of [...this.sessions.values()]) session.close("the controller was closed");
    // Its workers may all have left.
    this.current?.run.conclude();
    this.server.forceShutdown();
  }

  private nextRegistration(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.waiters.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.waiters.add(wake);
    });
  }

  private async start(
    asked: LoadSpec,
    onProgress: ((progress: LoadProgress) => void) | undefined,
    signal: AbortSignal | undefined,
  ): Promise<LoadResult> {
    checkLoadSpec(asked);
    checkLimits(asked, this.limits);
    const shape = limitedShape(asked.shape, this.limits);
    const spec = await resolveTargets({ ...asked, shape }, this.limits);
    signal?.throwIfAborted();
    if (this.endingBecause !== undefined) throw new InterruptedError(this.endingBecause);
    // Who registers later takes part in the next one.
    const sessions = [...this.sessions.values()];
    if (sessions.length === 0) throw new Error("no load worker is registered");
    if (spec.shape.kind !== "users" && spec.maxInFlight < sessions.length)
      throw new LoadSpecError([
        `maxInFlight of ${spec.maxInFlight} is less than one for each of ${sessions.length} workers`,
      ]);
    if (this.isRunning) throw new Error(`another measurement is running; ${spec.id} has to wait for its end`);
    this.isRunning = true;
    const { observer } = this;
    let result: LoadResult | undefined;
    try {
      observer?.started(spec);
      const run = new ControllerRun({ spec, sessions, onProgress, observer });
      this.current = { spec, run };
      result = await run.run(signal);
      return result;
    } finally {
      this.isRunning = false;
      this.current = undefined;
      observer?.ended(result);
    }
  }

  private onStream(stream: WorkerStream): void {
    stream.on("error", () => undefined);
    const [authorization = ""] = stream.metadata.get("authorization");
    if (!this.isAuthorized(String(authorization)))
      return refuse(stream, status.UNAUTHENTICATED, "the worker's token is not the controller's");
    let session: WorkerSession | undefined;
    let isRefused = false;
    const refuseOnce = (code: number, details: string): void => {
      if (!isRefused) refuse(stream, code, details);
      isRefused = true;
    };
    const silence = setTimeout(
      () => refuseOnce(status.DEADLINE_EXCEEDED, "the worker did not register"),
      HEARTBEAT_TIMEOUT_MS,
    );
    const gone = (reason: string): void => {
      clearTimeout(silence);
      session?.close(reason);
    };
    stream.on("data", (message: WorkerMessage) => {
      if (isRefused) return;
      if (message.body !== "register") return session?.received(message);
      const { protocolVersion } = message.register;
      const problem = registerProblem(message.register);
      if (protocolVersion !== PROTOCOL_VERSION) {
        const text = `the worker speaks protocol ${protocolVersion}, the controller ${PROTOCOL_VERSION}: run one version`;
        refuseOnce(status.FAILED_PRECONDITION, text);
      } else if (problem !== undefined) {
        refuseOnce(status.INVALID_ARGUMENT, problem);
      } else {
        clearTimeout(silence);
        session ??= this.register(message.register, stream);
        session.say({ body: "registered", registered: { epoch: this.epoch } });
      }
    });
    stream.on("end", () => gone("it left"));
    stream.on("cancelled", () => gone("its connection broke"));
  }

  private register(register: Register, stream: WorkerStream): WorkerSession {
    this.sessions.get(register.name)?.close("a newer worker of the same name came");
    const session = new WorkerSession(register, stream, () => {
      if (this.sessions.get(register.name) === session) this.sessions.delete(register.name);
    });
    this.sessions.set(register.name, session);
    this.onRegister?.(register);
    for (const waiter of [...this.waiters]) waiter();
    return session;
  }

  private isAuthorized(authorization: string): boolean {
    const given = Buffer.from(authorization);
    return given.length === this.token.length && timingSafeEqual(given, this.token);
  }
}

function refuse(stream: WorkerStream, code: number, details: string): void {
  const error: ServerErrorResponse = Object.assign(new Error(details), {
    code,
    details,
    metadata: new Metadata(),
  });
  stream.emit("error", error);
}
