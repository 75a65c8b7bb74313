import type * as k8s from "@pulumi/kubernetes";

/** Pod settings that the Pod Security level `restricted` demands, for one user and group. */
export function restrictedPod(userId: number): k8s.types.input.core.v1.PodSecurityContext {
  return {
    runAsNonRoot: true,
    runAsUser: userId,
    runAsGroup: userId,
    fsGroup: userId,
    // Changing the owner of every file of a large volume at each start takes minutes.
    fsGroupChangePolicy: "OnRootMismatch",
    seccompProfile: { type: "RuntimeDefault" },
  };
}

/** Container settings that `restricted` demands. */
export function restrictedContainer(
  readOnlyRootFilesystem: boolean,
): k8s.types.input.core.v1.SecurityContext {
  return { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, readOnlyRootFilesystem };
}
