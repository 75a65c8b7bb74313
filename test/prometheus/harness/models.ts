/** Models of the suite; their service times are given by parameters that mean the same to both servers. */
import type { TestModel } from "../../local-triton/support";

const batching = { max_queue_delay_microseconds: 5000 };
const instances = (count: number) => [{ count, kind: "KIND_GPU" as const }];

/** Models that show one trouble each, and one that has none. */
export const provokingModels: readonly TestModel[] = [
  {
    name: "good",
    hostMsPerImage: 1,
    gpuMsPerBatch: 20,
    gpuMsPerImage: 1,
    config: { max_batch_size: 8, dynamic_batching: batching, instance_group: instances(2) },
  },
  // 20 images a second, whatever the batch.
  {
    name: "slow",
    gpuMsPerImage: 50,
    config: { max_batch_size: 4, dynamic_batching: batching, instance_group: instances(1) },
  },
  // 20 images a second, and the GPU does nothing for most of the time.
  {
    name: "host",
    hostMsPerImage: 48,
    gpuMsPerImage: 2,
    config: { max_batch_size: 1, instance_group: instances(1) },
  },
  {
    name: "strict",
    gpuMsPerBatch: 100,
    config: {
      max_batch_size: 1,
      dynamic_batching: {
        default_queue_policy: { timeout_action: "REJECT", default_timeout_microseconds: 300_000 },
      },
      instance_group: instances(1),
    },
  },
];

/** Three variants of one model, each faster than the one before: for the pictures. */
export const variantModels: readonly TestModel[] = [
  {
    name: "fp32_bs8",
    hostMsPerImage: 1,
    gpuMsPerBatch: 30,
    gpuMsPerImage: 12,
    config: { max_batch_size: 8, dynamic_batching: batching, instance_group: instances(1) },
  },
  {
    name: "fp16_bs8",
    hostMsPerImage: 1,
    gpuMsPerBatch: 20,
    gpuMsPerImage: 7,
    config: { max_batch_size: 8, dynamic_batching: batching, instance_group: instances(1) },
  },
  {
    name: "int8_bs8_count2",
    hostMsPerImage: 1,
    gpuMsPerBatch: 14,
    gpuMsPerImage: 4,
    config: { max_batch_size: 8, dynamic_batching: batching, instance_group: instances(2) },
  },
];
