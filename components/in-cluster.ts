import type * as k8s from "@pulumi/kubernetes";
import * as pulumi from "@pulumi/pulumi";
import type { ClusterHandle } from "./cluster";

/** Where a component's Kubernetes objects go. */
export interface InCluster {
  readonly provider: k8s.Provider;
  readonly cluster: ClusterHandle;
}

/**
 * Options of an object that owns nothing outside the cluster. When the cluster itself is destroyed, the object is dropped
 * with it instead of being deleted first: a namespace that hangs on a finalizer cannot hold up a destroy.
 */
export function dropsWithCluster(
  parent: pulumi.Resource,
  target: InCluster,
  more: pulumi.CustomResourceOptions = {},
): pulumi.CustomResourceOptions {
  return { parent, provider: target.provider, deletedWith: target.cluster.owner, ...more };
}

/**
 * Options of an object that holds something outside the cluster, such as a pod with an attached disk: it is deleted and
 * awaited while the cluster is still there.
 */
export function deletedBeforeCluster(
  parent: pulumi.Resource,
  target: InCluster,
  more: pulumi.CustomResourceOptions = {},
): pulumi.CustomResourceOptions {
  return { parent, provider: target.provider, ...more };
}
