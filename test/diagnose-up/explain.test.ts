import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { noEvidence, type Evidence } from "../../diagnose-up/evidence";
import { explain } from "../../diagnose-up/explain";
import { gates, render, type Explanation } from "../../diagnose-up/explanation";
import { container, event, evidence, gpuNode, tritonPod, waitingPod } from "./fixtures";

const only = (parts: Partial<Evidence>): Explanation => {
  const found = explain(evidence(parts));
  expect(found.map((one) => one.gate)).toHaveLength(1);
  return found[0]!;
};
const gatesOf = (parts: Partial<Evidence>): string[] => explain(evidence(parts)).map((one) => one.gate);

describe("what Pulumi prints", () => {
  it.each([
    [
      "api",
      "  * googleapi: Error 403: Kubernetes Engine API has not been used in project 1 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/container.googleapis.com/overview?project=1 then retry., SERVICE_DISABLED",
      "gcloud services enable container.googleapis.com --project my-project",
    ],
    [
      "permission",
      'error: googleapi: Error 403: Required "container.clusters.create" permission(s) for "projects/p"., forbidden',
      "gcloud projects get-iam-policy my-project",
    ],
    [
      "quota",
      "googleapi: Error 403: Insufficient regional quota to satisfy request: resource \"PREEMPTIBLE_NVIDIA_T4_GPUS\": request requires '1.0' and is short '1.0'., forbidden",
      "--filter=quotas.metric=PREEMPTIBLE_NVIDIA_T4_GPUS",
    ],
    [
      "stockout",
      'NodePool gpu was created in the error state "ERROR": The zone does not have enough resources available, error code: GCE_STOCKOUT',
      "accelerator-types list",
    ],
    [
      "lock",
      "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end",
      "pulumi cancel",
    ],
    [
      "lock",
      "warning: Attempting to deploy or update resources with 1 pending operations from previous deployment.\n  * urn:pulumi:dev::p::a:b:C$gcp:container/cluster:Cluster::cluster, interrupted while creating",
      "pulumi import gcp:container/cluster:Cluster cluster ID",
    ],
    [
      "field-conflict",
      'Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas',
      "kubectl -n triton scale deployment/triton",
    ],
  ])("%s", (gate, pulumiOutput, command) => {
    const explanation = only({ pulumiOutput });
    expect(explanation.gate).toBe(gate);
    expect(explanation.steps.map((step) => step.command).join("\n")).toContain(command);
    expect(explanation.evidence[0]).toMatch(/^pulumi: /);
  });

  it("a conflict over several fields names them all", () => {
    const pulumiOutput = `Apply failed with 2 conflicts: conflicts with "argocd" using apps/v1:\n- .spec.template.spec.containers[name="triton"].image\n- .metadata.labels.team`;
    expect(only({ pulumiOutput }).summary).toContain(
      'argocd has changed .spec.template.spec.containers[name="triton"].image, .metadata.labels.team',
    );
  });

  it("a quota message is not taken for a missing permission, though both are 403 forbidden", () => {
    expect(
      gatesOf({ pulumiOutput: "googleapi: Error 403: Quota 'GPUS_ALL_REGIONS' exceeded., forbidden" }),
    ).toEqual(["quota"]);
  });
});

describe("a GPU pod without a node", () => {
  it("quota and stockout by the autoscaler's events, more exact than 'not placed'", () => {
    const pod = waitingPod();
    const failed = (why: string) => [
      event(
        pod,
        "FailedScaleUp",
        `Node scale up in zones us-central1-a associated with this pod failed: ${why}. Pod is at risk of not being scheduled.`,
      ),
      event(
        pod,
        "NotTriggerScaleUp",
        "pod didn't trigger scale-up: 1 in backoff after failed scale-up",
        "2026-01-01T00:01:00Z",
      ),
    ];
    expect(gatesOf({ pods: [pod], events: failed("GCE quota exceeded") })).toEqual(["quota"]);
    expect(gatesOf({ pods: [pod], events: failed("GCE out of resources") })).toEqual(["stockout"]);
  });

  it("waiting may help against a stockout and not against a quota", () => {
    const pod = waitingPod();
    expect(
      only({ pods: [pod], events: [event(pod, "FailedScaleUp", "failed: GCE out of resources.")] }).stuck,
    ).toBe(false);
    expect(
      only({ pods: [pod], events: [event(pod, "FailedScaleUp", "failed: GCE quota exceeded.")] }).stuck,
    ).toBe(true);
  });

  it("pool full: who holds the GPUs", () => {
    const pod = waitingPod();
    const holder = tritonPod({
      name: "notebook",
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    });
    const explanation = only({
      pods: [pod, holder],
      nodes: [gpuNode({ allocatable: "1" })],
      events: [event(pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached")],
    });
    expect(explanation.gate).toBe("pool-full");
    expect(explanation.evidence).toContain("pod triton/notebook holds 1 GPU on node gpu-node");
  });

  it("a node on its way is no fault, until the autoscaler says otherwise", () => {
    const pod = waitingPod();
    const up = event(
      pod,
      "TriggeredScaleUp",
      "pod triggered scale-up: [{gpu 0->1 (max: 1)}]",
      "2026-01-01T00:00:05Z",
    );
    expect(only({ pods: [pod], events: [up] })).toMatchObject({ gate: "node-starting", stuck: false });
    const earlier = event(
      pod,
      "NotTriggerScaleUp",
      "pod didn't trigger scale-up: 1 node(s) had untolerated taint(s)",
    );
    expect(gatesOf({ pods: [pod], events: [earlier, up] })).toEqual(["node-starting"]);
    const later = { ...earlier, lastTimestamp: "2026-01-01T00:00:09Z" };
    expect(gatesOf({ pods: [pod], events: [up, later] })).toEqual(["placement"]);
  });

  it("driver: GKE still installs it, nobody installs it, the installer fails", () => {
    const pod = waitingPod();
    expect(only({ pods: [pod], nodes: [gpuNode({ driver: "default" })] })).toMatchObject({
      gate: "driver",
      stuck: false,
    });
    expect(only({ pods: [pod], nodes: [gpuNode()] }).steps[0]?.command).toContain("get daemonset");
    const installer = {
      metadata: {
        name: "nvidia-driver-installer-x",
        namespace: "kube-system",
        labels: { "k8s-app": "nvidia-driver-installer" },
      },
      spec: { nodeName: "gpu-node", containers: [{ name: "pause" }] },
      status: {
        initContainerStatuses: [
          {
            name: "nvidia-driver-installer",
            ready: false,
            restartCount: 3,
            state: { waiting: { reason: "CrashLoopBackOff" } },
          },
        ],
      },
    };
    const logs = {
      "kube-system/nvidia-driver-installer-x/nvidia-driver-installer": "ok\nE0101 failed to download driver",
    };
    const failing = only({ pods: [pod, installer], nodes: [gpuNode()], logs });
    expect(failing.stuck).toBe(true);
    expect(failing.evidence.join("\n")).toContain("failed to download driver");
  });

  it("a pod without a GPU is not explained by GPUs", () => {
    const pod = waitingPod("0/2 nodes are available: 2 Insufficient cpu.", 0);
    expect(
      gatesOf({
        pods: [pod],
        nodes: [gpuNode()],
        events: [event(pod, "NotTriggerScaleUp", "1 max node group size reached")],
      }),
    ).toEqual(["placement"]);
  });
});

describe("a pod with a node", () => {
  it.each([
    ["manifest unknown: manifest for x:9 not found", "pulumi config set tritonVersion"],
    ["failed to authorize: 403 Forbidden", "bindings.role:artifactregistry"],
    ["dial tcp 1.2.3.4:443: i/o timeout", "gcloud compute routers list"],
    ["something new", "kubectl -n triton describe pod triton-1"],
  ])("image pull: %s", (message, command) => {
    const pod = tritonPod({ status: container({ waiting: { reason: "ErrImagePull", message } }) });
    const explanation = only({ pods: [pod] });
    expect(explanation.gate).toBe("image");
    expect(explanation.steps[0]?.command).toContain(command);
  });

  const crashing = (log: string, last?: { reason?: string; exitCode: number }) => ({
    pods: [tritonPod({ status: container({ waiting: { reason: "CrashLoopBackOff" } }, 3, last) })],
    logs: { "triton/triton-1/triton": log },
  });

  it.each([
    "error: creating server: Internal - Unable to create GCS client. Check account credentials.",
    "Could not get MetaData for directory with path gs://models-1/models : ... storage.objects.get access denied",
    "models-1: Anonymous caller does not have storage.objects.list access to the Google Cloud Storage bucket.",
    "Error code: 403 when reading gs://models-1",
  ])("access to the bucket: %s", (log) => {
    expect(gatesOf(crashing(log))[0]).toBe("iam");
  });

  it("model load: the log's reason, memory, and a load that takes too long", () => {
    const broken = only(
      crashing("failed to load 'tftrt_int8' version 1: Invalid argument: unexpected platform", {
        reason: "Error",
        exitCode: 1,
      }),
    );
    expect(broken.gate).toBe("model");
    expect(broken.evidence.join("\n")).toContain("unexpected platform");
    expect(only(crashing("", { reason: "OOMKilled", exitCode: 137 })).steps.at(-1)?.command).toContain(
      "tritonMemoryGi",
    );
    const pod = tritonPod({ status: container({}, 1) });
    const probe = event(pod, "Killing", "Container triton failed startup probe, will be restarted");
    expect(only({ pods: [pod], events: [probe] }).steps.at(-1)?.command).toContain("modelLoadBudgetS");
  });

  it("a server that is ready needs no explanation, whatever its log once said", () => {
    const ready = tritonPod({
      status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
    });
    expect(
      explain(evidence({ pods: [ready], logs: { "triton/triton-1/triton": "Anonymous caller" } })),
    ).toEqual([]);
  });
});

describe("all explanations", () => {
  it("come in the order of the gates and are printed with evidence and steps", () => {
    const pod = tritonPod({ status: container({ waiting: { reason: "ErrImagePull", message: "x" } }) });
    const found = explain(
      evidence({ pods: [pod], pulumiOutput: "the stack is currently locked by 1 lock(s)" }),
    );
    expect(found.map((one) => one.gate)).toEqual(["lock", "image"]);
    const text = render(found[1]!);
    expect(text).toMatch(/\[gate: image\]\n {2}seen: container triton/);
    expect(text).toContain("  next: ");
  });

  it("never fail, whatever Pulumi prints, and always have evidence, a step and a known gate", () => {
    const words = [
      "quota",
      "Error 403",
      "forbidden",
      "locked by 2 lock(s)",
      "the stack is currently",
      'conflict with "x"',
      "Apply failed with 1 conflict:",
      "GCE_STOCKOUT",
      "\n",
      ".spec.a",
    ];
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.constantFrom(...words), fc.string()), { maxLength: 20 }), (parts) => {
        for (const one of explain({ ...noEvidence, pulumiOutput: parts.join(" ") })) {
          expect(gates).toContain(one.gate);
          expect(one.evidence.length).toBeGreaterThan(0);
          expect(one.steps.length).toBeGreaterThan(0);
        }
      }),
    );
  });

  it("say nothing about nothing", () => {
    expect(explain(noEvidence)).toEqual([]);
  });
});
