import { listAt, objectsAt, textAt, types, valueAt, type Rule } from "../rule";

const primitiveRoles = new Set(["roles/owner", "roles/editor", "roles/viewer"]);
const everybody = new Set(["allUsers", "allAuthenticatedUsers"]);

const isIam = (type: string): boolean =>
  type.startsWith("gcp:") && /I(?:AM|am)(?:Member|Binding|Policy)$/.test(type);

const noServiceAccountKeys: Rule = {
  name: "no-service-account-keys",
  description: "No service account has a key: keys leak and never expire.",
  fix: "Use Workload Identity in the cluster, attached accounts on machines, and workload identity federation in CI.",
  appliesTo: types("gcp:serviceaccount/key:Key"),
  violations: () => ["makes a key"],
};

const noPrimitiveRoles: Rule = {
  name: "no-primitive-roles",
  description: "Nobody is owner, editor or viewer of the project.",
  fix: "Grant the predefined role that the work needs, on the smallest resource.",
  appliesTo: isIam,
  violations: ({ properties }) => {
    const role = textAt(properties, "role");
    return primitiveRoles.has(role) ? [`grants ${role}`] : [];
  },
};

const noPublicMembers: Rule = {
  name: "no-public-members",
  description: "Nothing is granted to everybody.",
  fix: "Name the principals.",
  appliesTo: isIam,
  violations: ({ properties }) => {
    const members = [valueAt(properties, "member"), ...listAt(properties, "members")];
    return members
      .filter((member) => typeof member === "string" && everybody.has(member))
      .map((member) => `grants to ${String(member)}`);
  },
};

const additiveIam: Rule = {
  name: "additive-iam",
  description: "Grants add members; they never set a whole policy or all members of a role.",
  fix: "Use the IAMMember resource: a binding or policy takes away what others have granted.",
  appliesTo: (type) => isIam(type) && !type.endsWith("Member"),
  violations: ({ type }) => [`${type.split(":")[2] ?? type} takes away the grants of others`],
};

const ownIdentity: Rule = {
  name: "own-identity",
  description:
    "Machines run under an account of their own, never the project's default account, which is an editor.",
  fix: "Set the service account to one made for the purpose.",
  appliesTo: types("gcp:container/nodePool:NodePool", "gcp:compute/instance:Instance"),
  violations: ({ type, properties }) => {
    const email = textAt(
      properties,
      type.endsWith(":NodePool") ? "nodeConfig.serviceAccount" : "serviceAccount.email",
    );
    const isDefault =
      email === "" || email === "default" || email.endsWith("-compute@developer.gserviceaccount.com");
    return isDefault ? ["runs under the default service account"] : [];
  },
};

const workloadIdentity: Rule = {
  name: "workload-identity",
  description: "Pods get identities of their own and cannot reach the node's.",
  fix: "Set workloadIdentityConfig on the cluster and workloadMetadataConfig.mode GKE_METADATA on every pool.",
  appliesTo: types("gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"),
  violations: ({ type, properties }) =>
    type.endsWith(":Cluster")
      ? textAt(properties, "workloadIdentityConfig.workloadPool") === ""
        ? ["has no workload pool"]
        : []
      : textAt(properties, "nodeConfig.workloadMetadataConfig.mode") === "GKE_METADATA"
        ? []
        : ["pods can take the node's identity"],
};

const secretLike = /(PASSWORD|TOKEN|SECRET|API_?KEY|CREDENTIALS)$/i;

const noLiteralSecrets: Rule = {
  name: "no-literal-secrets",
  description: "Passwords and tokens reach containers from Secrets, not as text in a pod or a ConfigMap.",
  fix: "Use valueFrom.secretKeyRef or a mounted Secret.",
  appliesTo: (type) => /^kubernetes:apps\/v1:(Deployment|DaemonSet|StatefulSet)$/.test(type),
  violations: ({ properties }) =>
    ["initContainers", "containers"]
      .flatMap((key) => objectsAt(properties, `spec.template.spec.${key}`))
      .flatMap((container) => objectsAt(container, "env"))
      .filter((variable) => secretLike.test(textAt(variable, "name")) && textAt(variable, "value") !== "")
      .map((variable) => `${textAt(variable, "name")} is written into the pod`),
};

export const identityRules: readonly Rule[] = [
  noServiceAccountKeys,
  noPrimitiveRoles,
  noPublicMembers,
  additiveIam,
  ownIdentity,
  workloadIdentity,
  noLiteralSecrets,
];
