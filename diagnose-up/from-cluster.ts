/** Gates inside the cluster: a place on a node, the driver, the image. Seen in pod conditions, events and nodes. */
import {
  driverInstaller as installer,
  eventsOf,
  gpusWanted,
  podId,
  unschedulable,
  type ContainerStatus,
  type Evidence,
  type KubeEvent,
  type Node,
  type Pod,
} from "./evidence";
import type { Explanation } from "./explanation";

const gpu = "nvidia.com/gpu";
const acceleratorLabel = "cloud.google.com/gke-accelerator";
const driverLabel = "cloud.google.com/gke-gpu-driver-version";

const lastEvent = (events: KubeEvent[], ...reasons: string[]): KubeEvent | undefined =>
  events.findLast((event) => reasons.includes(event.reason ?? ""));
const quoted = (event: KubeEvent, pod: Pod): string =>
  `event ${event.reason} of pod ${podId(pod)}: ${event.message}`;
const waiting = (evidence: Evidence): Pod[] =>
  evidence.pods.filter((pod) => unschedulable(pod) !== undefined);

/** Nodes that carry GPUs of which none can be used. */
function nodesWithoutDriver(evidence: Evidence): Node[] {
  return evidence.nodes.filter(
    (node) =>
      node.metadata.labels?.[acceleratorLabel] !== undefined && !Number(node.status.allocatable?.[gpu] ?? 0),
  );
}

/** A GPU pod waits, GPU nodes are there, none has an allocatable GPU. */
export function driver(evidence: Evidence): Explanation | undefined {
  const pod = waiting(evidence).find((candidate) => gpusWanted(candidate) > 0);
  const [node] = nodesWithoutDriver(evidence);
  if (!pod || !node) return undefined;
  const name = node.metadata.name;
  const version = node.metadata.labels?.[driverLabel];
  const seen = [
    `node ${name}: no allocatable ${gpu}`,
    `condition PodScheduled of pod ${podId(pod)}: ${unschedulable(pod)}`,
  ];
  if (version !== undefined) {
    return {
      gate: "driver",
      summary: `GKE installs the GPU driver (${version}) on node ${name} and has not finished; this takes up to five minutes.`,
      evidence: [...seen, `node ${name}: label ${driverLabel}=${version}`],
      steps: [
        {
          why: "follow the device plugin",
          command:
            "kubectl -n kube-system logs -l k8s-app=nvidia-gpu-device-plugin --all-containers --tail=20",
        },
      ],
      stuck: false,
    };
  }
  const pods = evidence.pods.filter((candidate) => candidate.metadata.labels?.["k8s-app"] === installer);
  const own = pods.find((candidate) => candidate.spec.nodeName === name);
  if (!own) {
    return {
      gate: "driver",
      summary: `Node ${name} has no GPU driver and no installer runs on it.`,
      evidence: [...seen, `DaemonSet ${installer}: ${pods.length} pods, none on the node`],
      steps: [
        {
          why: "see whether the DaemonSet exists (driverMode daemonset makes it)",
          command: `kubectl -n kube-system get daemonset ${installer}`,
        },
        { why: "see which mode the stack has", command: "pulumi config get driverMode" },
      ],
      stuck: true,
    };
  }
  const failed = [...(own.status.initContainerStatuses ?? []), ...(own.status.containerStatuses ?? [])].find(
    (status) => status.state?.waiting?.reason !== undefined || status.restartCount > 0,
  );
  const log = evidence.logs[`kube-system/${own.metadata.name}/${installer}`];
  const state = failed
    ? `container ${failed.name}: ${failed.state?.waiting?.reason ?? "restarted"}, ${failed.restartCount} restarts`
    : "running";
  return {
    gate: "driver",
    summary: `The driver installer on node ${name} has not made the GPU available.`,
    evidence: [...seen, `pod ${podId(own)}: ${state}`, ...lastLines(log, /error|fail|fatal/i, own)],
    steps: [
      {
        why: "read the installer's log",
        command: `kubectl -n kube-system logs ${own.metadata.name} -c ${installer} --tail=50`,
      },
      {
        why: "or let GKE install the driver (replaces the GPU pool)",
        command: "pulumi config set driverMode gke-default && pulumi up",
      },
    ],
    stuck: failed !== undefined,
  };
}

function lastLines(log: string | undefined, pattern: RegExp, pod: Pod): string[] {
  const lines = (log ?? "").split("\n").filter((line) => pattern.test(line));
  return lines.slice(-2).map((line) => `log of pod ${podId(pod)}: ${line.trim()}`);
}

/** A pod that wants a GPU, and every GPU that the pool may have is taken. */
export function poolFull(evidence: Evidence): Explanation | undefined {
  const pod = waiting(evidence).find(
    (candidate) =>
      gpusWanted(candidate) > 0 && /Insufficient nvidia\.com\/gpu/.test(unschedulable(candidate) ?? ""),
  );
  if (!pod || nodesWithoutDriver(evidence).length > 0) return undefined;
  const refusal = eventsOf(evidence, pod).findLast(
    (event) => event.reason === "NotTriggerScaleUp" && /max node group size/.test(event.message ?? ""),
  );
  if (!refusal) return undefined;
  const holders = evidence.pods.filter(
    (other) =>
      other.spec.nodeName !== undefined && gpusWanted(other) > 0 && other.status.phase !== "Succeeded",
  );
  return {
    gate: "pool-full",
    summary: `Pod ${podId(pod)} needs a GPU; all are taken and the GPU pool is at its largest size.`,
    evidence: [
      `condition PodScheduled of pod ${podId(pod)}: ${unschedulable(pod)}`,
      quoted(refusal, pod),
      ...holders.map(
        (other) => `pod ${podId(other)} holds ${gpusWanted(other)} GPU on node ${other.spec.nodeName}`,
      ),
    ],
    steps: [
      { why: "let the pool grow", command: "pulumi config set gpuMaxNodes N && pulumi up" },
      { why: "or run fewer servers", command: "pulumi config set replicas N && pulumi up" },
    ],
    stuck: true,
  };
}

/** No node fits, for a reason that is not a GPU. */
export function placement(evidence: Evidence): Explanation | undefined {
  const pod = waiting(evidence).find(
    (candidate) => lastEvent(eventsOf(evidence, candidate), "NotTriggerScaleUp") !== undefined,
  );
  if (!pod) return undefined;
  const events = eventsOf(evidence, pod);
  const refusal = lastEvent(events, "NotTriggerScaleUp");
  // An earlier refusal says nothing once a node is on its way.
  if (lastEvent(events, "NotTriggerScaleUp", "TriggeredScaleUp") !== refusal || !refusal) return undefined;
  return {
    gate: "placement",
    summary: `No node takes pod ${podId(pod)}, and no pool may grow for it.`,
    evidence: [`condition PodScheduled of pod ${podId(pod)}: ${unschedulable(pod)}`, quoted(refusal, pod)],
    steps: [
      {
        why: "compare what the pod asks for with what the pools have",
        command: `kubectl -n ${pod.metadata.namespace} describe pod ${pod.metadata.name}`,
      },
      {
        why: "see the pools",
        command: `gcloud container node-pools list --cluster CLUSTER --location ${evidence.names.location} --project ${evidence.names.project}`,
      },
    ],
    stuck: true,
  };
}

/** A node is on its way: nothing to do but wait. */
export function nodeStarting(evidence: Evidence): Explanation | undefined {
  for (const pod of waiting(evidence)) {
    const scaling = lastEvent(
      eventsOf(evidence, pod),
      "TriggeredScaleUp",
      "NotTriggerScaleUp",
      "FailedScaleUp",
    );
    if (scaling?.reason !== "TriggeredScaleUp") continue;
    return {
      gate: "node-starting",
      summary: `A node for pod ${podId(pod)} is starting; with driver and image a GPU node takes five to ten minutes.`,
      evidence: [quoted(scaling, pod)],
      steps: [{ why: "watch it come", command: "kubectl get nodes --watch" }],
      stuck: false,
    };
  }
  return undefined;
}

const pullReasons = [
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "RegistryUnavailable",
];

function pulling(pod: Pod): ContainerStatus | undefined {
  const statuses = [...(pod.status.initContainerStatuses ?? []), ...(pod.status.containerStatuses ?? [])];
  return statuses.find((status) => pullReasons.includes(status.state?.waiting?.reason ?? ""));
}

/** The image cannot be had. */
export function image(evidence: Evidence): Explanation | undefined {
  const pod = evidence.pods.find((candidate) => pulling(candidate) !== undefined);
  const container = pod && pulling(pod);
  if (!pod || !container) return undefined;
  const reason = container.state?.waiting?.reason ?? "";
  const events = eventsOf(evidence, pod).filter(
    (event) => event.reason === "Failed" || event.reason === "FailedToPull",
  );
  const messages = [container.state?.waiting?.message ?? "", ...events.map((event) => event.message ?? "")];
  const text = messages.join("\n");
  const wanted = container.image ?? "its image";
  const step = /not found|manifest unknown|no such manifest/i.test(text)
    ? {
        why: "the tag does not exist: set one that does",
        command: "pulumi config set tritonVersion YY.MM && pulumi up",
      }
    : /401|403|denied|unauthorized|forbidden/i.test(text)
      ? {
          why: "the nodes' service account may not pull: it needs roles/artifactregistry.reader",
          command: `gcloud projects get-iam-policy ${evidence.names.project} --flatten=bindings --filter=bindings.role:artifactregistry --format="table(bindings.role,bindings.members)"`,
        }
      : /timeout|i\/o|no route|connection refused|TLS handshake/i.test(text)
        ? {
            why: "the registry is not reached: private nodes need Cloud NAT",
            command: `gcloud compute routers list --project ${evidence.names.project}`,
          }
        : {
            why: "see all of the pull's messages",
            command: `kubectl -n ${pod.metadata.namespace} describe pod ${pod.metadata.name}`,
          };
  return {
    gate: "image",
    summary: `Pod ${podId(pod)} cannot pull ${wanted}.`,
    evidence: [
      `container ${container.name} of pod ${podId(pod)} waits: ${reason}${container.state?.waiting?.message ? `: ${container.state.waiting.message}` : ""}`,
      ...events.slice(-1).map((event) => quoted(event, pod)),
    ],
    steps: [step],
    stuck: true,
  };
}
