/** Gates that Google Cloud keeps: APIs, permissions, quota, machines. Seen in what Pulumi prints and in autoscaler events. */
import { eventsOf, podId, unschedulable, type Evidence, type Names } from "./evidence";
import type { Explanation, Step } from "./explanation";

/** Lines of Pulumi's output that match, without their indentation and list marks. */
function outputLines(evidence: Evidence, pattern: RegExp): string[] {
  const lines = evidence.pulumiOutput.split("\n").filter((line) => pattern.test(line));
  return [
    ...new Set(lines.map((line) => `pulumi: ${line.replace(/^[\s*]+/, "").replace(/^error: /, "")}`)),
  ].slice(0, 3);
}

/** Events of pods without a node that match. */
function podEvents(evidence: Evidence, pattern: RegExp): string[] {
  const found = evidence.pods
    .filter((pod) => unschedulable(pod) !== undefined)
    .flatMap((pod) =>
      eventsOf(evidence, pod)
        .filter((event) => pattern.test(event.message ?? ""))
        .map((event) => `event ${event.reason} of pod ${podId(pod)}: ${event.message}`),
    );
  return [...new Set(found)].slice(-3);
}

const regionOf = (location: string): string => location.replace(/-[a-z]$/, "");

export function apiDisabled(evidence: Evidence): Explanation | undefined {
  const pattern =
    /\b([a-z]+\.googleapis\.com) has not been used in project|API has not been used in project|SERVICE_DISABLED/;
  const lines = outputLines(evidence, pattern);
  if (lines.length === 0) return undefined;
  const api = /([a-z]+\.googleapis\.com)/.exec(lines.join("\n"))?.[1] ?? "API";
  return {
    gate: "api",
    summary: `The Google API ${api} is not enabled in the project, or was enabled less than a few minutes ago.`,
    evidence: lines,
    steps: [
      {
        why: "enable it, then run pulumi up again",
        command: `gcloud services enable ${api} --project ${evidence.names.project}`,
      },
    ],
    stuck: true,
  };
}

export function permission(evidence: Evidence): Explanation | undefined {
  const lines = outputLines(
    evidence,
    /Required "[^"]+" permission|PERMISSION_DENIED|does not have permission|forbidden/i,
  ).filter((line) => !/quota/i.test(line));
  if (lines.length === 0) return undefined;
  const missing = /Required "([^"]+)" permission/.exec(lines.join("\n"))?.[1];
  return {
    gate: "permission",
    summary: missing
      ? `The account that runs Pulumi lacks the permission ${missing}.`
      : "The account that runs Pulumi may not do this.",
    evidence: lines,
    steps: [
      {
        why: "see which account that is",
        command: "gcloud auth application-default print-access-token >/dev/null && gcloud config get account",
      },
      {
        why: "see its roles; docs/permissions lists those that the stack needs",
        command: `gcloud projects get-iam-policy ${evidence.names.project} --flatten=bindings --filter=bindings.members:ACCOUNT --format="value(bindings.role)"`,
      },
    ],
    stuck: true,
  };
}

function quotaSteps(names: Names, metric: string): Step[] {
  const region = regionOf(names.location);
  return [
    {
      why: "compare limit and usage in the region",
      command: `gcloud compute regions describe ${region} --project ${names.project} --flatten=quotas --filter=quotas.metric=${metric} --format="table(quotas.metric,quotas.limit,quotas.usage)"`,
    },
    {
      why: "compare the global limit, which new projects start with at 0",
      command: `gcloud compute project-info describe --project ${names.project} --flatten=quotas --filter=quotas.metric=GPUS_ALL_REGIONS --format="table(quotas.metric,quotas.limit,quotas.usage)"`,
    },
    {
      why: "ask for more, then run pulumi up again",
      command: `https://console.cloud.google.com/iam-admin/quotas?project=${names.project}`,
    },
  ];
}

export function quota(evidence: Evidence): Explanation | undefined {
  const lines = [...outputLines(evidence, /quota/i), ...podEvents(evidence, /quota/i)];
  if (lines.length === 0) return undefined;
  const metric = /resource "([A-Z0-9_]+)"/.exec(lines.join("\n"))?.[1] ?? "NVIDIA_T4_GPUS";
  return {
    gate: "quota",
    summary: `The project's quota (${metric} or GPUS_ALL_REGIONS) does not allow another GPU machine.`,
    evidence: lines,
    steps: quotaSteps(evidence.names, metric),
    stuck: true,
  };
}

export function stockout(evidence: Evidence): Explanation | undefined {
  const pattern =
    /STOCKOUT|out of resources|RESOURCE_POOL_EXHAUSTED|does not have enough resources available/i;
  const lines = [...outputLines(evidence, pattern), ...podEvents(evidence, pattern)];
  if (lines.length === 0) return undefined;
  return {
    gate: "stockout",
    summary: "Google has no such GPU machine left in the stack's zones at the moment.",
    evidence: lines,
    steps: [
      {
        why: "list the zones that have the GPU",
        command: `gcloud compute accelerator-types list --project ${evidence.names.project} --filter="name=nvidia-tesla-t4 AND zone~${regionOf(evidence.names.location)}"`,
      },
      { why: "add one, then run pulumi up again", command: "pulumi config set --path 'zones[1]' ZONE" },
      {
        why: "or leave Spot, which runs out first (replaces the pool)",
        command: "pulumi config set gpuSpot false",
      },
    ],
    // The autoscaler and the pool go on trying, and machines come back.
    stuck: false,
  };
}
