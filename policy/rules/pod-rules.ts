import { containersOf, podOf, runsPods } from "../pods";
import { listAt, objectsAt, textAt, valueAt, type Rule } from "../rule";

/**
 * Why a reference does not name one image for ever, or null.
 *
 * A digest is exact. A tag is exact when it names a version: it has a digit and is not one of the moving names.
 */
export function inexactImage(image: string): string | null {
  if (image === "") return "has no image";
  if (/@sha256:[0-9a-f]{64}$/.test(image)) return null;
  if (image.includes("@")) return `${image} has a broken digest`;
  // A colon before the last slash belongs to the registry's port.
  const tag = /:([^:/]+)$/.exec(image)?.[1];
  if (tag === undefined) return `${image} has no tag, which means latest`;
  return /\d/.test(tag) && !/^latest|^edge|^nightly|^main$|^master$/.test(tag)
    ? null
    : `${image} has a tag that moves`;
}

const exactImages: Rule = {
  name: "exact-images",
  description: "Every container runs an exact version of its image.",
  fix: "Use a version tag, or the digest that scripts/resolve-digests.ts finds.",
  appliesTo: (type) => runsPods(type) || type === "docker-build:index:Image",
  violations: (resource) => {
    const images = runsPods(resource.type)
      ? containersOf(podOf(resource)).map((container) => textAt(container, "image"))
      : listAt(resource.properties, "tags").filter((tag) => typeof tag === "string");
    return images.flatMap((image) => inexactImage(image) ?? []);
  },
};

const unprivilegedPods: Rule = {
  name: "unprivileged-pods",
  description: "Pods have no power over their node.",
  fix: "Use the Pod Security level restricted: no privileged containers, host namespaces, host paths or added capabilities.",
  appliesTo: runsPods,
  violations: (resource) => {
    const pod = podOf(resource);
    const host = ["hostNetwork", "hostPID", "hostIPC"].filter((key) => valueAt(pod, key) === true);
    const paths = objectsAt(pod, "volumes").filter((volume) => valueAt(volume, "hostPath") !== undefined);
    return [
      ...host.map((key) => `uses ${key}`),
      ...paths.map((volume) => `mounts the node's ${textAt(volume, "hostPath.path")}`),
      ...containersOf(pod).flatMap((container) => {
        const name = textAt(container, "name");
        return [
          ...(valueAt(container, "securityContext.privileged") === true ? [`${name} is privileged`] : []),
          ...listAt(container, "securityContext.capabilities.add").map(
            (capability) => `${name} adds ${String(capability)}`,
          ),
        ];
      }),
    ];
  },
};

const nonRootPods: Rule = {
  name: "non-root-pods",
  description: "Containers run as a user without rights, and cannot gain any.",
  fix: "Set runAsNonRoot, and allowPrivilegeEscalation to false.",
  appliesTo: runsPods,
  violations: (resource) => {
    const pod = podOf(resource);
    return containersOf(pod).flatMap((container) => {
      const name = textAt(container, "name");
      const nonRoot =
        valueAt(container, "securityContext.runAsNonRoot") ?? valueAt(pod, "securityContext.runAsNonRoot");
      return [
        ...(nonRoot === true ? [] : [`${name} may run as root`]),
        ...(valueAt(container, "securityContext.allowPrivilegeEscalation") === false
          ? []
          : [`${name} may gain privileges`]),
      ];
    });
  },
};

export const podRules: readonly Rule[] = [exactImages, unprivilegedPods, nonRootPods];
