import type { ModelDynamicBatching } from "../model-repo/config-types";
import type { QueuePolicy } from "../serving-model/batcher";

/** Triton's default_queue_policy; without one nothing is limited. */
export function queuePolicyOf(batching: ModelDynamicBatching | undefined): QueuePolicy {
  const policy = batching?.default_queue_policy;
  return {
    maxQueueSize: policy?.max_queue_size ?? 0,
    defaultTimeoutUs: policy?.default_timeout_microseconds ?? 0,
    timeoutAction: policy?.timeout_action === "DELAY" ? "delay" : "reject",
    allowTimeoutOverride: policy?.allow_timeout_override ?? false,
  };
}
