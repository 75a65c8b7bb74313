/**
 * Virtual-time simulation of one GPU node under load: the node model's rules for single-image requests without queue policy,
 * in flat arrays and with one step a batch. It gives the same executions as NodeModel (a test holds it to that), a hundred
 * times faster than one event a request would.
 */
import type { SimulatedShape } from "./arrival-source";
import type { BatchRuleSettings } from "./batch-rule";
import type { PhaseVariation } from "./node-model";
import { NodeRun } from "./node-run";
import { PayloadRun } from "./payload-run";
import { checkLaw, type ServiceLaw } from "./service-law";
import type { SimulationResult } from "./window-stats";

export interface SimulatedServer extends BatchRuleSettings {
  readonly instanceCount: number;
  readonly law: ServiceLaw;
  /**
   * How batches are made while all instances are busy. `idle`: not at all, an instance that gets free takes what is queued then, as in
   * the inference server of 2019 that the documents measured. `payload`: they are made up beforehand, as in Triton since 2021 (see
   * payload-run.ts). Default `idle`.
   */
  readonly scheduler?: "idle" | "payload";
  /** Default: nominal times. */
  readonly variation?: PhaseVariation;
  /** The same as random numbers of the run's seed, where the same server is simulated many times. Only without `variation`. */
  readonly variationFor?: (seed: number) => PhaseVariation;
}

export interface SimulatedLoad {
  readonly shape: SimulatedShape;
  readonly seed: number;
  /** Load before the measured window, seconds. */
  readonly warmupS: number;
  /** Measured window, seconds. Sending stops at its end; what is inside is still answered. */
  readonly measureS: number;
  readonly sloBoundMs: number;
  /** Length of the intervals of the result, seconds. Default: the whole window. */
  readonly intervalS?: number;
  /** Requests in flight beyond which a request is shed (counted as late, never sent). Default: no cap. */
  readonly maxInFlight?: number;
}

/** @throws RangeError naming the setting that is wrong. */
export function simulate(server: SimulatedServer, load: SimulatedLoad): SimulationResult {
  check(server, load);
  const isPayload = server.scheduler === "payload" && server.dynamicBatching;
  const run = isPayload ? new PayloadRun(server, load) : new IdleRun(server, load);
  while (run.step());
  return run.stats.result();
}

function check(server: SimulatedServer, load: SimulatedLoad): void {
  checkLaw(server.law);
  if (!Number.isInteger(server.instanceCount) || server.instanceCount < 1) {
    throw new RangeError(`instanceCount is ${server.instanceCount}; it must be an integer >= 1.`);
  }
  if (!(load.warmupS >= 0)) throw new RangeError(`warmupS is ${load.warmupS}; it must be >= 0.`);
  if (!(load.measureS > 0)) throw new RangeError(`measureS is ${load.measureS}; it must be > 0.`);
  if (!(load.sloBoundMs > 0)) throw new RangeError(`sloBoundMs is ${load.sloBoundMs}; it must be > 0.`);
}

/** Instances take from the queue when they get free. */
class IdleRun extends NodeRun {
  /** Does the next thing that happens: an execution starts, or a host phase ends. False when nothing is left. */
  step(): boolean {
    const { hostEndUs, freeAtUs } = this;
    let hosting = -1;
    let hostUs = Infinity;
    let idle = -1;
    let freeUs = Infinity;
    for (let i = 0; i < freeAtUs.length; i++) {
      // Of host phases that end together, the batch taken first goes first.
      if (
        hostEndUs[i]! < hostUs ||
        (hostEndUs[i]! === hostUs && hosting >= 0 && this.start[i]! < this.start[hosting]!)
      ) {
        hostUs = hostEndUs[(hosting = i)]!;
      }
      // GPU phases follow each other, so an instance still in its host phase gets free after all that are in freeAt.
      if (freeAtUs[i]! < freeUs) freeUs = freeAtUs[(idle = i)]!;
    }
    if (hostUs <= freeUs) {
      if (hosting < 0) return false;
      this.enterGpu(hosting, hostUs);
      return true;
    }
    if (freeUs > this.nowUs) this.nowUs = freeUs;
    const size = this.waitForBatch(hostUs);
    if (size > 0) {
      this.dispatch(idle, size);
      return true;
    }
    if (hosting < 0) return false;
    this.enterGpu(hosting, hostUs);
    return true;
  }

  /**
   * Moves on from nowUs to the moment at which an idle instance takes a batch, and returns its size; 0 when a host phase that
   * ends at `untilUs` comes first (Infinity: when no request is left).
   */
  private waitForBatch(untilUs: number): number {
    const { rule } = this;
    let atUs = this.nowUs;
    while (this.nextEnqueuedUs(atUs) <= atUs) this.ready++;
    let queued = this.ready - this.taken;
    let overUs = queued > 0 ? this.enqueued[this.taken & this.mask]! + rule.queueDelayUs : Infinity;
    let size = queued > 0 ? rule.takeOfSingles(queued, atUs >= overUs) : 0;
    while (size === 0) {
      const limitUs = overUs < untilUs ? overUs : untilUs;
      const nextUs = this.nextEnqueuedUs(limitUs);
      // A host phase that ends now goes first: it may, in a closed loop, bring requests.
      if (nextUs >= untilUs && untilUs <= overUs) return 0;
      if (nextUs > overUs) {
        atUs = overUs;
      } else {
        atUs = nextUs;
        this.ready++;
        if (++queued === 1) overUs = atUs + rule.queueDelayUs;
      }
      size = rule.takeOfSingles(queued, atUs >= overUs);
    }
    this.nowUs = atUs;
    return size;
  }
}
