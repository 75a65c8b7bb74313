/** Google's own words, as users report them; the explanations are tested against these. */
import type { Operation, World } from "./world";

const permissionOf: Record<string, string> = {
  "gcp:container/cluster:Cluster": "container.clusters",
  "gcp:container/nodePool:NodePool": "container.clusters",
  "gcp:storage/bucket:Bucket": "storage.buckets",
  "gcp:compute/network:Network": "compute.networks",
};

/** hashicorp/terraform-provider-google issues on node pools in projects without GPU quota. */
export const quotaExceeded = (): string =>
  'googleapi: Error 403: Insufficient regional quota to satisfy request: resource "NVIDIA_T4_GPUS": request requires ' +
  "'1.0' and is short '1.0'. project has a quota of '0.0' with '0.0' available. View and manage quotas at " +
  "https://console.cloud.google.com/iam-admin/quotas?usage=USED, forbidden";

/** The provider sets the id first, then waits; hashicorp/terraform-provider-google#6287. */
export const stockedOut = (id: string): string =>
  `NodePool ${id.split("/").at(-1)} was created in the error state "ERROR": Google Compute Engine: The zone does not have ` +
  "enough resources available to fulfill the request. (resource type:compute), error code: GCE_STOCKOUT";

export const apiDisabled = (api: string, world: World): string =>
  `googleapi: Error 403: ${api} has not been used in project ${world.projectNumber} before or it is disabled. Enable it by ` +
  `visiting https://console.developers.google.com/apis/api/${api}/overview?project=${world.projectNumber} then retry. If ` +
  "you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry., SERVICE_DISABLED";

export const permissionDenied = (type: string, operation: Operation, world: World): string =>
  `googleapi: Error 403: Required "${permissionOf[type] ?? type}.${operation}" permission(s) for ` +
  `"projects/${world.project}"., forbidden`;
