import type { GpuReading } from "../executor";
import type { CountedModel } from "../models/counter-registry";
import { FAILURE_REASONS, type ModelCounters } from "../models/statistics";
import type { CpuReading } from "./cpu";
import type { HostHealth } from "./host-health";

/** Everything that /metrics shows. */
export interface MetricsInput {
  readonly models: readonly CountedModel[];
  readonly gpus: readonly GpuReading[];
  readonly cpu: CpuReading;
  readonly host: HostHealth;
  /** Wall seconds per model second; null when nothing is simulated. */
  readonly timeDilation: number | null;
}

type CounterField = Exclude<keyof ModelCounters, "failures">;

/** Name, help text and source of Triton's per-model counters, in its order; the failures come second. */
const COUNTERS: readonly (readonly [name: string, help: string, field: CounterField])[] = [
  ["nv_inference_count", "Number of inferences performed (does not include cached requests)", "inferences"],
  [
    "nv_inference_exec_count",
    "Number of model executions performed (does not include cached requests)",
    "executions",
  ],
  [
    "nv_inference_request_duration_us",
    "Cumulative inference request duration in microseconds (includes cached requests)",
    "requestUs",
  ],
  [
    "nv_inference_queue_duration_us",
    "Cumulative inference queuing duration in microseconds (includes cached requests)",
    "queueUs",
  ],
  [
    "nv_inference_compute_input_duration_us",
    "Cumulative compute input duration in microseconds (does not include cached requests)",
    "computeInputUs",
  ],
  [
    "nv_inference_compute_infer_duration_us",
    "Cumulative compute inference duration in microseconds (does not include cached requests)",
    "computeInferUs",
  ],
  [
    "nv_inference_compute_output_duration_us",
    "Cumulative inference compute output duration in microseconds (does not include cached requests)",
    "computeOutputUs",
  ],
];

const GPU_GAUGES: readonly (readonly [
  name: string,
  help: string,
  field: Exclude<keyof GpuReading, "uuid">,
])[] = [
  ["nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "utilization"],
  ["nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "memoryTotalBytes"],
  ["nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "memoryUsedBytes"],
  ["nv_gpu_power_usage", "GPU power usage in watts", "powerW"],
  ["nv_gpu_power_limit", "GPU power management limit in watts", "powerLimitW"],
];

/** Pinned memory pool of Triton's default size; nothing is ever taken from it here. */
const PINNED_POOL_BYTES = 268_435_456;

/** Prometheus text: Triton's families with their names, labels and help texts, then this server's own (`local_triton_*`). */
export function metricsText(input: MetricsInput): string {
  return `${[...modelFamilies(input.models), ...machineFamilies(input), ...ownFamilies(input)].join("\n")}\n`;
}

function family(
  name: string,
  type: "counter" | "gauge" | "histogram",
  help: string,
  samples: readonly string[],
): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples];
}

function modelFamilies(models: readonly CountedModel[]): string[] {
  const labels = ({ name, version }: CountedModel): string => `{model="${name}",version="${version}"}`;
  const perModel = (name: string, value: (model: CountedModel) => number): string[] =>
    models.map((model) => `${name}${labels(model)} ${value(model)}`);
  const success = "nv_inference_request_success";
  const failure = "nv_inference_request_failure";
  const pending = "nv_inference_pending_request_count";
  return [
    ...family(
      success,
      "counter",
      "Number of successful inference requests, all batch sizes",
      perModel(success, (model) => model.counters.success),
    ),
    ...family(
      failure,
      "counter",
      "Number of failed inference requests, all batch sizes",
      models.flatMap((model) =>
        FAILURE_REASONS.map(
          (reason) =>
            `${failure}{model="${model.name}",reason="${reason}",version="${model.version}"} ${model.counters.failures[reason]}`,
        ),
      ),
    ),
    ...COUNTERS.flatMap(([name, help, field]) =>
      family(
        name,
        "counter",
        help,
        perModel(name, (model) => model.counters[field]),
      ),
    ),
    ...family(
      pending,
      "gauge",
      "Instantaneous number of pending requests awaiting execution per-model.",
      perModel(pending, (model) => model.waiting),
    ),
  ];
}

function machineFamilies({ gpus, cpu }: MetricsInput): string[] {
  const gauge = (name: string, help: string, value: number): string[] =>
    family(name, "gauge", help, [`${name} ${value}`]);
  const perGpu = (name: string, value: (gpu: GpuReading) => number): string[] =>
    gpus.map((gpu) => `${name}{gpu_uuid="${gpu.uuid}"} ${value(gpu)}`);
  const energy = "nv_energy_consumption";
  const gpuFamilies = [
    ...GPU_GAUGES.flatMap(([name, help, field]) =>
      family(
        name,
        "gauge",
        help,
        perGpu(name, (gpu) => gpu[field]),
      ),
    ),
    ...family(
      energy,
      "counter",
      "GPU energy consumption in joules since the Triton Server started",
      perGpu(energy, (gpu) => gpu.energyJ),
    ),
  ];
  return [
    ...(gpus.length === 0 ? [] : gpuFamilies),
    ...gauge(
      "nv_pinned_memory_pool_total_bytes",
      "Pinned memory pool total memory size, in bytes",
      PINNED_POOL_BYTES,
    ),
    ...gauge("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes", 0),
    ...gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", cpu.utilization),
    ...gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", cpu.memoryTotalBytes),
    ...gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", cpu.memoryUsedBytes),
  ];
}

function ownFamilies({ host, timeDilation }: MetricsInput): string[] {
  const lateness = "local_triton_answer_lateness_us";
  const loopDelay = "local_triton_event_loop_delay_us";
  const dilation = "local_triton_time_dilation";
  const cpu = "local_triton_process_cpu_seconds_total";
  return [
    ...family(
      lateness,
      "histogram",
      "Real minus planned departure of an execution's answers, model microseconds",
      host.latenessUs.lines(lateness),
    ),
    ...family(
      loopDelay,
      "histogram",
      "Delay of the server's event loop, probed every 10 ms, model microseconds",
      host.loopDelayUs.lines(loopDelay),
    ),
    ...(timeDilation === null
      ? []
      : family(dilation, "gauge", "Wall seconds per model second", [`${dilation} ${timeDilation}`])),
    ...family(cpu, "counter", "CPU time of the server process, wall seconds", [`${cpu} ${host.cpuSeconds}`]),
  ];
}
