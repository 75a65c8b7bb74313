import { objectsAt, valueAt, isObject, type Properties, type Resource } from "./rule";

/** Kinds with a pod template, and the place of the pod in them. */
const podPaths: Readonly<Record<string, string>> = {
  Pod: "spec",
  Deployment: "spec.template.spec",
  DaemonSet: "spec.template.spec",
  StatefulSet: "spec.template.spec",
  ReplicaSet: "spec.template.spec",
  Job: "spec.template.spec",
  CronJob: "spec.jobTemplate.spec.template.spec",
};

const kindOf = (type: string): string => type.split(":")[2] ?? "";

/** True for Kubernetes objects that run pods. */
export const runsPods = (type: string): boolean => type.startsWith("kubernetes:") && kindOf(type) in podPaths;

/** The pod of a resource that runs some. */
export function podOf(resource: Resource): Properties {
  const pod = valueAt(resource.properties, podPaths[kindOf(resource.type)] ?? "spec");
  return isObject(pod) ? pod : {};
}

/** All containers of a pod, those that run first and those that are added for debugging included. */
export const containersOf = (pod: Properties): readonly Properties[] =>
  ["initContainers", "containers", "ephemeralContainers"].flatMap((key) => objectsAt(pod, key));
