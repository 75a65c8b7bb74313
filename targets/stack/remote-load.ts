/**
 * The stack's load controller as the sweep's load client. The controller owns a measurement: it goes on when this machine loses its
 * connection or sleeps, and its result is fetched by id.
 */
import type { MeasurementState } from "../../loadgen/controller-api";
import type { LatencySummary, LoadClient, LoadProgress, LoadResult, LoadSpec } from "../../loadgen/load-spec";
import { TargetError } from "../target-error";

export interface RemoteLoadOptions {
  /** URL of the controller's API. */
  readonly url: string;
  readonly token: string;
  /** Folder of the same images in the load workers' containers. */
  readonly imageFolder: string;
  /** From an address that this machine reaches to the one that the workers use. */
  readonly inClusterAddress: (address: string) => string;
  /** How long the controller may be out of reach before a measurement is given up, milliseconds. */
  readonly patienceMs?: number;
  readonly pollMs?: number;
}

/** The controller's clock against this machine's. */
export interface ClockOffset {
  /** Positive: the controller's is ahead. Milliseconds. */
  readonly offsetMs: number;
  /** Half the round trip: the offset is known within this. Milliseconds. */
  readonly uncertaintyMs: number;
}

/** A machine that was asleep over lunch goes on where it was. */
const PATIENCE_MS = 30 * 60_000;
const POLL_MS = 1000;
const CALL_TIMEOUT_MS = 10_000;
/** The quickest of so many answers tells the offset of the clocks. */
const CLOCK_READINGS = 5;

/** The controller does not know the measurement: it was replaced, and the measurement is lost. */
export class LostMeasurementError extends Error {
  override readonly name = "LostMeasurementError";
}

export class RemoteLoad implements LoadClient {
  constructor(private readonly options: RemoteLoadOptions) {}

  /** Load workers that are connected now. @throws TargetError when the controller refuses the token */
  async workers(): Promise<readonly { readonly name: string }[]> {
    return (await this.call("GET", "/workers")) as { name: string }[];
  }

  /** How far the clocks differ, by the midpoint of the quickest round trip. */
  async clockOffset(): Promise<ClockOffset> {
    let best: ClockOffset | null = null;
    for (let reading = 0; reading < CLOCK_READINGS; reading++) {
      const from = Date.now();
      const { unixMs } = (await this.call("GET", "/healthz")) as { unixMs?: number };
      if (unixMs === undefined)
        throw new TargetError(
          "the load controller is an older version, which does not tell its clock: run pulumi up",
        );
      const uncertaintyMs = (Date.now() - from) / 2;
      if (best === null || uncertaintyMs < best.uncertaintyMs)
        best = { offsetMs: unixMs - from - uncertaintyMs, uncertaintyMs };
    }
    return best!;
  }

  /** The result's times are on this machine's clock. */
  async run(
    spec: LoadSpec,
    onProgress?: (progress: LoadProgress) => void,
    signal?: AbortSignal,
  ): Promise<LoadResult> {
    const { inClusterAddress, imageFolder } = this.options;
    const outside = new Map(spec.addresses.map((address) => [inClusterAddress(address), address]));
    const remote: LoadSpec = { ...spec, addresses: [...outside.keys()], imageFolder };
    const path = `/measurements/${encodeURIComponent(spec.id)}`;
    // Asked for twice it is still one measurement.
    let state = await this.patiently(signal, () => this.measurement("PUT", path, remote));
    for (;;) {
      if (state.state === "finished") {
        const { offsetMs } = await this.patiently(signal, () => this.clockOffset());
        return onThisClock(withOutsideAddresses(restoreNaN(state.result), outside), offsetMs);
      }
      if (state.state === "failed") throw new Error(`the load controller: ${state.error}`);
      if (state.progress) onProgress?.(state.progress);
      await this.pause(signal, path);
      state = await this.patiently(signal, () => this.measurement("GET", path));
    }
  }

  async close(): Promise<void> {
    // The controller is the stack's; it stays.
  }

  private async pause(signal: AbortSignal | undefined, path: string): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, this.options.pollMs ?? POLL_MS);
      signal?.addEventListener("abort", done);
      if (signal?.aborted) done();
    });
    if (!signal?.aborted) return;
    await this.call("DELETE", path).catch(() => undefined);
    signal.throwIfAborted();
  }

  /** Repeats a call that does not get through; an answer of the controller, also a refusal, ends it. */
  private async patiently<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    const until = performance.now() + (this.options.patienceMs ?? PATIENCE_MS);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (error instanceof TargetError || error instanceof LostMeasurementError) throw error;
        if (performance.now() > until) {
          const reason = error instanceof Error ? error.message : String(error);
          throw new Error(`the load controller cannot be reached (${reason})`);
        }
      }
      signal?.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, this.options.pollMs ?? POLL_MS));
    }
  }

  private async measurement(method: string, path: string, body?: unknown): Promise<MeasurementState> {
    return (await this.call(method, path, body)) as MeasurementState;
  }

  private async call(method: string, path: string, body?: unknown): Promise<unknown> {
    const { url, token } = this.options;
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { "content-type": "application/json" } : {}) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    if (response.status === 401)
      throw new TargetError(
        "the load controller refuses the token of the stack's secret: run pulumi up, then try again",
      );
    if (response.status === 404)
      throw new LostMeasurementError(
        "the load controller was replaced during the trial, whose result is lost with it",
      );
    const text = await response.text();
    if (response.status === 400)
      throw new TargetError(`the load controller refuses the measurement: ${text}`);
    if (!response.ok) throw new Error(`HTTP status ${response.status}: ${text.slice(0, 200)}`);
    return JSON.parse(text) as unknown;
  }
}

/** JSON has no NaN: what there is no percentile of comes as null. */
function restoreNaN(result: LoadResult): LoadResult {
  const numbers = <T extends object>(values: T): T =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, value === null ? NaN : (value as unknown)]),
    ) as T;
  const summary = (values: LatencySummary): LatencySummary => numbers(values);
  return {
    ...result,
    response: summary(result.response),
    service: summary(result.service),
    health: numbers(result.health),
  };
}

function withOutsideAddresses(result: LoadResult, outside: ReadonlyMap<string, string>): LoadResult {
  const perAddress = Object.entries(result.perAddress).map(
    ([address, count]) => [outside.get(address) ?? address, count] as const,
  );
  return { ...result, perAddress: Object.fromEntries(perAddress) };
}

function onThisClock(result: LoadResult, offsetMs: number): LoadResult {
  const { measuredFromUnixMs, measuredToUnixMs } = result;
  return {
    ...result,
    measuredFromUnixMs: measuredFromUnixMs - offsetMs,
    measuredToUnixMs: measuredToUnixMs - offsetMs,
  };
}
