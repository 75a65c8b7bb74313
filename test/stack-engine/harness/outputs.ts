/**
 * Plausible computed outputs: what Google and Kubernetes add to a resource's inputs, as far as the stack reads it. Only
 * shape and stability matter: the same resource answers the same in every run.
 */
import { createHash } from "node:crypto";
import { at, Secret, Unknown, UNKNOWN, type PropertyMap, type PropertyValue } from "./property-value";
import type { Registration } from "./recording";

/** Id and cloud name of a resource. */
export interface Identity {
  readonly id: string;
  readonly name: PropertyValue;
}

/** Extra or different outputs by type. */
export type OutputFixtures = Readonly<
  Record<string, (inputs: PropertyMap, identity: Identity) => PropertyMap>
>;

/** Seven hexadecimal digits that depend on the URN only: stands for the random suffix of an automatic name. */
export const suffixOf = (urn: string): string => createHash("sha256").update(urn).digest("hex").slice(0, 7);

/** The text, or unknown where a part is: `T(inputs.project)`. */
function join(parts: TemplateStringsArray, ...values: (PropertyValue | undefined)[]): PropertyValue {
  let text = parts[0] ?? "";
  for (const [index, value] of values.entries()) {
    if (value instanceof Unknown) return UNKNOWN;
    const shown = value instanceof Secret ? value.value : value;
    text += `${typeof shown === "string" || typeof shown === "number" ? shown : "none"}${parts[index + 1] ?? ""}`;
  }
  return text;
}

const inProject = (inputs: PropertyMap, kind: string, name: PropertyValue): PropertyValue =>
  join`https://www.googleapis.com/compute/v1/projects/${inputs.project}/${kind}/${name}`;

const COMPUTED: OutputFixtures = {
  "gcp:compute/network:Network": (inputs, { name }) => ({
    selfLink: inProject(inputs, "global/networks", name),
  }),
  "gcp:compute/subnetwork:Subnetwork": (inputs, { name }) => ({
    selfLink: inProject(inputs, "regions/any/subnetworks", name),
    gatewayAddress: "10.0.0.1",
  }),
  "gcp:compute/router:Router": (inputs, { name }) => ({
    selfLink: inProject(inputs, "regions/any/routers", name),
  }),
  "gcp:compute/address:Address": (inputs, { name }) => ({
    selfLink: inProject(inputs, "regions/any/addresses", name),
    address: "203.0.113.20",
  }),
  "gcp:compute/instance:Instance": (inputs, { name }) => ({
    selfLink: inProject(inputs, "zones/any/instances", name),
    instanceId: "4242424242424242424",
    currentStatus: "RUNNING",
  }),
  "gcp:serviceaccount/account:Account": (inputs) => {
    const email = join`${inputs.accountId}@${inputs.project}.iam.gserviceaccount.com`;
    return {
      email,
      member: join`serviceAccount:${email}`,
      name: join`projects/${inputs.project}/serviceAccounts/${email}`,
      uniqueId: "1000",
    };
  },
  "gcp:storage/bucket:Bucket": (_inputs, { name }) => ({
    url: join`gs://${name}`,
    selfLink: join`https://storage/${name}`,
  }),
  "gcp:storage/bucketObject:BucketObject": (inputs, { name }) => ({
    outputName: name,
    selfLink: join`https://storage/${inputs.bucket}/${name}`,
    generation: 1,
    md5hash: "bWQ1",
  }),
  "gcp:artifactregistry/repository:Repository": (inputs) => ({
    name: join`projects/${inputs.project}/locations/${inputs.location}/repositories/${inputs.repositoryId}`,
    registryUri: join`${inputs.location}-docker.pkg.dev/${inputs.project}/${inputs.repositoryId}`,
  }),
  "gcp:container/cluster:Cluster": (inputs, { name }) => ({
    selfLink: join`https://container.googleapis.com/v1/projects/${inputs.project}/locations/${inputs.location}/clusters/${name}`,
    endpoint: "203.0.113.10",
    masterVersion: "1.34.1-gke.1001000",
    masterAuth: { clusterCaCertificate: "Q0EgZm9yIHRlc3Rz", clientCertificate: "", clientKey: "" },
    controlPlaneEndpointsConfig: {
      ...mapAt(inputs, "controlPlaneEndpointsConfig"),
      dnsEndpointConfig: {
        ...mapAt(inputs, "controlPlaneEndpointsConfig.dnsEndpointConfig"),
        endpoint: "gke-0123456789abcdef.us-central1.gke.goog",
      },
    },
  }),
  "gcp:container/nodePool:NodePool": () => ({
    instanceGroupUrls: [],
    managedInstanceGroupUrls: [],
    version: "1.34.1-gke.1001000",
  }),
  "gcp:monitoring/notificationChannel:NotificationChannel": (inputs, { name }) => ({
    name: join`projects/${inputs.project}/notificationChannels/${name}`,
  }),
  "random:index/randomPassword:RandomPassword": (_inputs, { id }) => ({
    result: `generated-${suffixOf(id)}`,
    bcryptHash: `hash-${suffixOf(id)}`,
  }),
  "random:index/randomId:RandomId": (_inputs, { id }) => ({
    hex: suffixOf(id),
    dec: "42",
    b64Url: "YWJj",
    b64Std: "YWJj",
  }),
  "random:index/randomString:RandomString": (_inputs, { id }) => ({ result: suffixOf(id) }),
  "docker-build:index:Image": (inputs) => {
    const tag = at(inputs, "tags[0]");
    const digest = `sha256:${createHash("sha256").update("image").digest("hex")}`;
    return { ref: join`${tag}@${digest}`, digest, contextHash: "context" };
  },
};

/**
 * Outputs that a provider may announce as unknown while it previews an update of an existing resource
 * (pulumi-kubernetes#1148: any change of the cluster made its endpoint unknown, and all objects in it were "replaced").
 */
const UNKNOWN_DURING_UPDATE: Readonly<Record<string, readonly string[]>> = {
  "gcp:container/cluster:Cluster": ["endpoint", "masterAuth", "masterVersion", "controlPlaneEndpointsConfig"],
  "docker-build:index:Image": ["ref", "digest", "contextHash"],
};

/** Outputs that a preview of an update shows: all known ones, without those that the provider cannot promise. */
export function previewOfUpdate(type: string, outputs: PropertyMap): PropertyMap {
  const unknown = UNKNOWN_DURING_UPDATE[type] ?? [];
  return { ...outputs, ...Object.fromEntries(unknown.map((key) => [key, UNKNOWN])) };
}

/** Computed outputs of a type; a type without an entry adds only its name. */
export function computedOutputs(
  type: string,
  inputs: PropertyMap,
  identity: Identity,
  fixtures: OutputFixtures = {},
): PropertyMap {
  if (type.startsWith("kubernetes:")) {
    return { metadata: { ...mapAt(inputs, "metadata"), name: identity.name, uid: suffixOf(identity.id) } };
  }
  const computed = fixtures[type] ?? COMPUTED[type];
  return { name: identity.name, ...computed?.(inputs, identity) };
}

/**
 * Id and name that a resource gets; the automatic name is the logical one with a suffix, as the providers do it.
 *
 * @param replaced id of the resource that this one replaces: its successor has another automatic name
 */
export function identityOf(
  asked: Pick<Registration, "type" | "urn" | "name" | "inputs">,
  replaced = "",
): Identity {
  const automatic = `${asked.name}-${suffixOf(asked.urn + replaced)}`;
  const { inputs } = asked;
  if (asked.type.startsWith("kubernetes:")) {
    const name = at(inputs, "metadata.name") ?? automatic;
    const namespace = at(inputs, "metadata.namespace");
    return { name, id: namespace === undefined ? shown(name) : `${shown(namespace)}/${shown(name)}` };
  }
  const name = at(inputs, "name") ?? automatic;
  if (asked.type === "gcp:container/cluster:Cluster") {
    return {
      name,
      id: `projects/${shown(inputs.project)}/locations/${shown(inputs.location)}/clusters/${shown(name)}`,
    };
  }
  return {
    name,
    id: asked.type.startsWith("pulumi:providers:")
      ? suffixOf(asked.urn + replaced)
      : `${asked.type.split(":")[2] ?? "id"}/${shown(name)}`,
  };
}

/** Wraps the outputs that the program or its SDK declared secret. */
export function withSecrets(
  outputs: PropertyMap,
  asked: Pick<Registration, "additionalSecretOutputs">,
): PropertyMap {
  return Object.fromEntries(
    Object.entries(outputs).map(([key, value]) => {
      const wrap =
        asked.additionalSecretOutputs.includes(key) &&
        !(value instanceof Secret) &&
        !(value instanceof Unknown);
      return [key, wrap ? new Secret(value) : value];
    }),
  );
}

function mapAt(inputs: PropertyMap, path: string): PropertyMap {
  const found = at(inputs, path);
  return typeof found === "object" && found !== null && found.constructor === Object
    ? (found as PropertyMap)
    : {};
}

const shown = (value: PropertyValue | undefined): string => (typeof value === "string" ? value : "unknown");
