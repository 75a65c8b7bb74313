import type { CompleteModelConfig } from "../../model-repo/config-types";
import { NodeDevices, type NodeModel } from "../../serving-model/node-model";
import {
  type Executor,
  type GpuReading,
  ModelLoadError,
  type ModelRunner,
  type ModelToLoad,
  type RunnerListener,
  type RunnerRequest,
} from "../executor";
import type { ModelClock } from "../model-clock";
import { DEFAULT_GPU_POLL_US, MAX_INSTANCES, SimulatedGpu } from "./gpu";
import { simulatedModel } from "./model-law";
import { type RunnerHost, SimulatedRunner } from "./runner";

/**
 * Model time to load a model or another configuration of it, microseconds. A real SavedModel with TF-TRT engines takes several
 * seconds; half a second keeps a sweep short and still shows that loading is not instant.
 */
export const DEFAULT_LOAD_TIME_US = 500_000;

/** What the executor tells about its own timing. */
export interface TimingObserver {
  /** An answer planned for a model time left `latenessUs` model microseconds after it. */
  lateness(latenessUs: number): void;
}

/** A model as the executor's event loop sees it. */
interface Member {
  readonly node: Pick<NodeModel<unknown>, "advance" | "nextEventUs">;
  readonly instanceCount: number;
}

/**
 * A GKE node with one T4 in simulation. Everything is computed by the same node model as in virtual time and planned in absolute
 * model time: the real clock says when requests arrive, and timers only say when to look. A late timer delays an answer by its
 * lateness (which is reported), but neither the start of the next batch nor any figure of the model.
 */
export class SimulatedT4 implements Executor, RunnerHost {
  readonly gpuIds = [0];
  readonly instanceKind = "KIND_GPU";
  private readonly devices = new NodeDevices();
  private readonly gpu: SimulatedGpu;
  private readonly members = new Set<Member>();
  private timer: NodeJS.Timeout | null = null;
  private timerUs = Infinity;
  private advancing = false;

  constructor(
    private readonly clock: ModelClock,
    private readonly observer: TimingObserver,
    /** Model time that loading takes, microseconds. */
    private readonly loadTimeUs: number = DEFAULT_LOAD_TIME_US,
    /** How often the GPU metrics are refreshed, model microseconds. */
    gpuPollUs: number = DEFAULT_GPU_POLL_US,
  ) {
    this.gpu = new SimulatedGpu(gpuPollUs);
  }

  async load<Request extends RunnerRequest>(
    { config, previous }: ModelToLoad,
    listener: RunnerListener<Request>,
  ): Promise<ModelRunner<Request>> {
    const model = simulatedModel(config);
    const others = this.instances - (previous === null ? 0 : simulatedModel(previous).instanceCount);
    if (others + model.instanceCount > MAX_INSTANCES) {
      throw new ModelLoadError(
        `Internal: out of memory: the simulated T4 holds ${MAX_INSTANCES} instances, ` +
          `${others} are loaded and '${config.name}' wants ${model.instanceCount} (instance_group.count)`,
      );
    }
    // Triton changes the instance count of a loaded model without loading it anew.
    const loadUs = previous !== null && differsInInstancesOnly(config, previous) ? 0 : this.loadTimeUs;
    await new Promise((resolve) => setTimeout(resolve, this.clock.wallMs(loadUs)));
    const runner = new SimulatedRunner(model, config, this.devices, this, listener, (closed) => {
      this.members.delete(closed);
    });
    this.members.add(runner);
    return runner;
  }

  gpus(): readonly GpuReading[] {
    const nowUs = this.advanceToNow();
    return [this.gpu.reading(nowUs, this.devices.gpuBusyUs(nowUs), this.instances)];
  }

  async close(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  advanceToNow(): number {
    const nowUs = this.clock.nowUs();
    // A listener may submit or cancel while events are being worked off; those are then worked off by the loop that runs.
    if (this.advancing) return nowUs;
    this.advancing = true;
    try {
      for (let member = this.next(nowUs); member !== null; member = this.next(nowUs)) {
        this.pollGpu(member.atUs);
        member.node.advance(member.atUs);
      }
      this.pollGpu(nowUs);
    } finally {
      this.advancing = false;
    }
    return nowUs;
  }

  changed(): void {
    let nextUs = Infinity;
    for (const { node } of this.members) nextUs = Math.min(nextUs, node.nextEventUs());
    if (nextUs >= this.timerUs) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timerUs = nextUs;
    this.timer = setTimeout(() => this.wake(), Math.max(1, Math.round(this.clock.wallMsUntil(nextUs))));
  }

  delivered(endUs: number): void {
    this.observer.lateness(this.clock.nowUs() - endUs);
  }

  private get instances(): number {
    let sum = 0;
    for (const member of this.members) sum += member.instanceCount;
    return sum;
  }

  private wake(): void {
    this.timer = null;
    this.timerUs = Infinity;
    this.advanceToNow();
    this.changed();
  }

  /** The model with the next event up to `untilUs`: the GPU is shared, so events go in the order of their times. */
  private next(untilUs: number): { readonly node: Member["node"]; readonly atUs: number } | null {
    let node: Member["node"] | null = null;
    let atUs = Infinity;
    for (const member of this.members) {
      const eventUs = member.node.nextEventUs();
      if (eventUs < atUs) {
        atUs = eventUs;
        node = member.node;
      }
    }
    return node === null || atUs > untilUs ? null : { node, atUs };
  }

  /** Refreshes the GPU's gauges at every poll that is due by `untilUs`; all models stand there or before. */
  private pollGpu(untilUs: number): void {
    while (this.gpu.pollDueUs <= untilUs) this.gpu.poll(this.devices.gpuBusyUs(this.gpu.pollDueUs));
  }
}

function differsInInstancesOnly(config: CompleteModelConfig, previous: CompleteModelConfig): boolean {
  const rest = (whole: CompleteModelConfig): string => JSON.stringify({ ...whole, instance_group: [] });
  return rest(config) === rest(previous);
}
