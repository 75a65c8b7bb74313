/** How Deployments get from one version to the next, so that `pulumi up` ends when the new version is ready and not before. */
import type * as k8s from "@pulumi/kubernetes";

/**
 * Pulumi takes a rollout for done when the Deployment says that its newest ReplicaSet is complete and available. A rollout back to a
 * kept ReplicaSet begins with that message of an earlier one, so none is kept: Pulumi's state is the history.
 */
export const awaited = { revisionHistoryLimit: 0 } satisfies Partial<k8s.types.input.apps.v1.DeploymentSpec>;

/**
 * One pod at a time goes before its successor comes. Not `Recreate`, which does the same at once: until the old pods are gone such a
 * Deployment still reports the old rollout as complete, and about every third `pulumi up` on a busy machine ended there, without a server.
 */
export const withoutSurge = {
  ...awaited,
  strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
} satisfies Partial<k8s.types.input.apps.v1.DeploymentSpec>;
