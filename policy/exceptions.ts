import { textAt, type Resource } from "./rule";

/** A violation that is accepted, and why. */
export interface Exception {
  /** Name of the rule. */
  readonly rule: string;
  readonly type: string;
  /** `namespace/name` of the Kubernetes object. */
  readonly object: string;
  /** What is accepted; everything else about the object is not. */
  readonly violation: RegExp;
  readonly reason: string;
}

const driver = { type: "kubernetes:apps/v1:DaemonSet", object: "kube-system/nvidia-driver-installer" };

/** All exceptions there are. A test demands that each is used. */
export const exceptions: readonly Exception[] = [
  {
    ...driver,
    rule: "unprivileged-pods",
    violation: /^(uses host(Network|PID)|mounts the node's |nvidia-driver-installer is privileged)/,
    reason: "It loads a kernel module into the node and installs the driver's files there.",
  },
  {
    ...driver,
    rule: "non-root-pods",
    violation: /^(nvidia-driver-installer|pause) may (run as root|gain privileges)$/,
    reason:
      "Loading a kernel module takes root; the pause container only keeps the pod alive and does nothing.",
  },
  {
    ...driver,
    rule: "exact-images",
    violation: /^cos-nvidia-installer:fixed has a tag that moves$/,
    reason:
      "The image is part of the node's operating system, which fixes its version; it is never pulled (imagePullPolicy Never).",
  },
];

/** The exception that accepts a violation, if there is one. */
export function exceptionFor(rule: string, resource: Resource, violation: string): Exception | undefined {
  const object = `${textAt(resource.properties, "metadata.namespace")}/${textAt(resource.properties, "metadata.name")}`;
  return exceptions.find(
    (exception) =>
      exception.rule === rule &&
      exception.type === resource.type &&
      exception.object === object &&
      exception.violation.test(violation),
  );
}
