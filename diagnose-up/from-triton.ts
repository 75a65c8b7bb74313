/** Gates that Triton itself keeps: reading the bucket, loading the model. Seen in its log and in probe events. */
import { eventsOf, isSettled, podId, type ContainerStatus, type Evidence, type Pod } from "./evidence";
import type { Explanation } from "./explanation";

const container = "triton";

interface Server {
  pod: Pod;
  status: ContainerStatus;
  log: string;
}

/** Servers that run or restart and are not ready. */
function unreadyServers(evidence: Evidence): Server[] {
  return evidence.pods
    .filter((pod) => !isSettled(pod))
    .flatMap((pod) => {
      const status = pod.status.containerStatuses?.find((one) => one.name === container);
      return status ? [{ pod, status, log: evidence.logs[`${podId(pod)}/${container}`] ?? "" }] : [];
    });
}

function matching(server: Server, pattern: RegExp): string[] {
  const lines = server.log.split("\n").filter((line) => pattern.test(line));
  return [...new Set(lines.map((line) => line.trim()))]
    .slice(-3)
    .map((line) => `log of pod ${podId(server.pod)}: ${line}`);
}

/**
 * Without a usable identity Triton falls back to anonymous access, so a missing binding reads like a private bucket
 * (triton-inference-server/server#6344, #5537).
 */
const iamPattern =
  /Unable to create GCS client|does not have (?:serviceusage|storage)\.|Anonymous caller|storage\.(?:objects|buckets)\.\w+.*(?:denied|access)|(?:failed to stat|Could not get MetaData).*(?:gs:\/\/|bucket)|Error code: (?:401|403)|metadata\.google\.internal/i;

export function iam(evidence: Evidence): Explanation | undefined {
  for (const server of unreadyServers(evidence)) {
    const lines = matching(server, iamPattern);
    if (lines.length === 0) continue;
    const { namespace } = server.pod.metadata;
    return {
      gate: "iam",
      summary: `Triton in pod ${podId(server.pod)} may not read the model repository.`,
      evidence: lines,
      steps: [
        {
          why: "the bucket must name this namespace and service account as objectViewer and legacyBucketReader",
          command: `gcloud storage buckets get-iam-policy gs://${evidence.names.bucket}`,
        },
        {
          why: "compare with the pod's service account",
          command: `kubectl -n ${namespace} get pod ${server.pod.metadata.name} -o jsonpath={.spec.serviceAccountName}`,
        },
        {
          why: "a new binding needs up to seven minutes; then restart the server",
          command: `kubectl -n ${namespace} delete pod ${server.pod.metadata.name}`,
        },
      ],
      stuck: false,
    };
  }
  return undefined;
}

const modelPattern =
  /failed to load|load failed|error: creating server|Internal: |Invalid argument: |Not found: |UNAVAILABLE:/;
const outOfMemory = /OutOfMemory|out of memory|OOM when allocating|CUDA_ERROR_OUT_OF_MEMORY/i;

/** The server starts and the model does not load, or loads longer than its startup probe waits. */
export function model(evidence: Evidence): Explanation | undefined {
  for (const server of unreadyServers(evidence)) {
    const { pod, status } = server;
    const probe = eventsOf(evidence, pod).findLast((event) =>
      /failed startup probe/.test(event.message ?? ""),
    );
    const terminated = status.lastState?.terminated ?? status.state?.terminated;
    const crashing = status.state?.waiting?.reason === "CrashLoopBackOff" || status.restartCount > 0;
    if (!probe && !crashing) continue;
    const log = matching(server, modelPattern);
    const killed = terminated?.reason === "OOMKilled" || outOfMemory.test(server.log);
    const { namespace, name } = pod.metadata;
    const seen = [
      `container ${container} of pod ${podId(pod)}: ${status.restartCount} restarts${terminated ? `, last ended with ${terminated.reason ?? "exit"} (${terminated.exitCode})` : ""}`,
      ...(probe ? [`event ${probe.reason} of pod ${podId(pod)}: ${probe.message}`] : []),
      ...log,
    ];
    const read = {
      why: "read the end of the last run",
      command: `kubectl -n ${namespace} logs ${name} -c ${container} --previous --tail=60`,
    };
    if (killed) {
      return {
        gate: "model",
        summary: `Triton in pod ${podId(pod)} runs out of memory while it loads the model.`,
        evidence: [...seen, ...matching(server, outOfMemory)],
        steps: [
          read,
          {
            why: "give it more, or serve fewer instances",
            command: "pulumi config set tritonMemoryGi N && pulumi up",
          },
        ],
        stuck: true,
      };
    }
    if (probe && log.length === 0) {
      return {
        gate: "model",
        summary: `The model in pod ${podId(pod)} takes longer to load than modelLoadBudgetS allows; the server is restarted each time.`,
        evidence: seen,
        steps: [
          read,
          { why: "allow more time", command: "pulumi config set modelLoadBudgetS N && pulumi up" },
        ],
        stuck: true,
      };
    }
    return {
      gate: "model",
      summary: `Triton in pod ${podId(pod)} ends while it loads the model.`,
      evidence: seen,
      steps: [
        read,
        {
          why: "see which files the model has",
          command: `gcloud storage ls --recursive gs://${evidence.names.bucket}`,
        },
      ],
      stuck: true,
    };
  }
  return undefined;
}
