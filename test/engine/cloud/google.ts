/** The Google resource types that the stack uses: ids, computed outputs, what they need and what holds them. */
import { createHash } from "node:crypto";
import type { Gke } from "./gke";
import { clusterType, poolType } from "./gke";
import { Refused, type DataSource, type Kind, type ProviderDefinition } from "./kinds";
import type { Thing, Values, World } from "./world";

const text = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";
const lastPart = (value: unknown): string => text(value).split("/").at(-1) ?? "";
const compute = "https://www.googleapis.com/compute/v1";
const selfLink = (id: string): Values => ({ selfLink: `${compute}/${id}` });

const networkType = "gcp:compute/network:Network";
const subnetworkType = "gcp:compute/subnetwork:Subnetwork";
const routerType = "gcp:compute/router:Router";
const bucketType = "gcp:storage/bucket:Bucket";
const objectType = "gcp:storage/bucketObject:BucketObject";
const accountType = "gcp:serviceaccount/account:Account";
const repositoryType = "gcp:artifactregistry/repository:Repository";
const instanceType = "gcp:compute/instance:Instance";

/** Whether a thing refers to another by id, self link or name. */
const refersTo = (value: unknown, target: Thing): boolean =>
  text(value) !== "" && lastPart(value) === lastPart(target.id);
const named = (world: World, type: string, value: unknown): Thing | undefined =>
  world.all(type).find((thing) => refersTo(value, thing));
/** Name of what is referred to and does not exist. */
const absent = (world: World, type: string, value: unknown): string | undefined =>
  named(world, type, value) ? undefined : text(value);
const userOf = (world: World, target: Thing, users: Record<string, string>): string | undefined => {
  for (const [type, property] of Object.entries(users)) {
    const user = world.all(type).find((thing) => refersTo(thing.inputs[property], target));
    if (user)
      return `The ${target.type.split(":").at(-1)} resource '${target.id}' is already being used by '${user.id}', resourceInUseByAnotherResource`;
  }
  return undefined;
};
const iamMember = (target: (inputs: Values) => string): Kind => ({
  id: (inputs) => `${target(inputs)}/${text(inputs.role)}/${text(inputs.member)}`,
  computed: () => ({ etag: "BwX" }),
});

/** Accounts that a member string names must exist, as IAM demands. */
function unknownMember(inputs: Values, world: World): string | undefined {
  const email = /^serviceAccount:(.+@.+\.iam\.gserviceaccount\.com)$/.exec(text(inputs.member))?.[1];
  return email && !world.where(accountType, "email", email) ? `Service account ${email}` : undefined;
}

function kinds(gke: Gke): Record<string, Kind> {
  return {
    "gcp:projects/service:Service": { id: (inputs) => `${text(inputs.project)}/${text(inputs.service)}` },
    "gcp:projects/iAMMember:IAMMember": {
      ...iamMember((inputs) => text(inputs.project)),
      missing: unknownMember,
    },
    [accountType]: {
      api: "iam.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/serviceAccounts/${text(inputs.accountId)}@${world.project}.iam.gserviceaccount.com`,
      computed: (_inputs, id) => {
        const email = lastPart(id);
        return { email, member: `serviceAccount:${email}`, name: id, uniqueId: "100000000000000000000" };
      },
    },
    "gcp:billing/budget:Budget": {
      id: (inputs) => `billingAccounts/${text(inputs.billingAccount)}/budgets/1`,
      computed: () => ({ name: "1" }),
    },
    "gcp:monitoring/alertPolicy:AlertPolicy": {
      api: "monitoring.googleapis.com",
      id: (_inputs, world) => `projects/${world.project}/alertPolicies/1`,
      computed: (_inputs, id) => ({ name: id, creationRecords: [] }),
    },
    [networkType]: {
      api: "compute.googleapis.com",
      id: (inputs, world) => `projects/${world.project}/global/networks/${text(inputs.name)}`,
      computed: (_inputs, id) => ({ ...selfLink(id), gatewayIpv4: "", numericId: "1" }),
      heldBy: (thing, world) =>
        userOf(world, thing, {
          [subnetworkType]: "network",
          [routerType]: "network",
          "gcp:compute/firewall:Firewall": "network",
          [clusterType]: "network",
        }),
    },
    [subnetworkType]: {
      api: "compute.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/regions/${text(inputs.region)}/subnetworks/${text(inputs.name)}`,
      computed: (_inputs, id) => ({ ...selfLink(id), gatewayAddress: "10.0.0.1", fingerprint: "1" }),
      missing: (inputs, world) => absent(world, networkType, inputs.network),
      heldBy: (thing, world) => {
        const vm = world.all(instanceType).find((instance) => {
          const [first] = (instance.inputs.networkInterfaces ?? []) as { subnetwork?: string }[];
          return refersTo(first?.subnetwork, thing);
        });
        if (vm)
          return `The subnetwork resource '${thing.id}' is already being used by '${vm.id}', resourceInUseByAnotherResource`;
        return userOf(world, thing, { [clusterType]: "subnetwork" });
      },
    },
    [routerType]: {
      api: "compute.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/regions/${text(inputs.region)}/routers/${text(inputs.name)}`,
      computed: (_inputs, id) => selfLink(id),
      missing: (inputs, world) => absent(world, networkType, inputs.network),
    },
    "gcp:compute/routerNat:RouterNat": {
      api: "compute.googleapis.com",
      id: (inputs, world) =>
        `${world.project}/${text(inputs.region)}/${text(inputs.router)}/${text(inputs.name)}`,
      missing: (inputs, world) => absent(world, routerType, inputs.router),
    },
    "gcp:compute/firewall:Firewall": {
      api: "compute.googleapis.com",
      id: (inputs, world) => `projects/${world.project}/global/firewalls/${text(inputs.name)}`,
      computed: (_inputs, id) => selfLink(id),
      missing: (inputs, world) => absent(world, networkType, inputs.network),
    },
    "gcp:compute/disk:Disk": {
      api: "compute.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/zones/${text(inputs.zone)}/disks/${text(inputs.name)}`,
      computed: (_inputs, id) => selfLink(id),
      heldBy: (thing) => gke.diskUser(thing.id),
    },
    [instanceType]: {
      api: "compute.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/zones/${text(inputs.zone)}/instances/${text(inputs.name)}`,
      computed: (_inputs, id) => ({
        ...selfLink(id),
        currentStatus: "RUNNING",
        instanceId: "1",
        cpuPlatform: "Intel Skylake",
      }),
      missing: (inputs, world) => {
        const [first] = inputs.networkInterfaces as { subnetwork?: string }[];
        return absent(world, subnetworkType, first?.subnetwork);
      },
      create: async (thing) => {
        // cluster-toolkit PR 460: the API refuses it and nothing tells earlier.
        const scheduling = thing.inputs.scheduling as { onHostMaintenance?: string } | undefined;
        const gpus = ((thing.inputs.guestAccelerators ?? []) as unknown[]).length > 0;
        if (gpus && scheduling?.onHostMaintenance !== "TERMINATE") {
          throw new Refused(
            "googleapi: Error 400: Instances with guest accelerators do not support live migration., badRequest",
          );
        }
      },
    },
    [bucketType]: {
      api: "storage.googleapis.com",
      id: (inputs) => text(inputs.name),
      computed: (inputs, id) => ({
        url: `gs://${id}`,
        selfLink: `https://www.googleapis.com/storage/v1/b/${id}`,
        location: text(inputs.location).toUpperCase(),
      }),
      heldBy: (thing, world) => {
        const filled = world.all(objectType).some((object) => object.inputs.bucket === thing.id);
        return filled && !thing.inputs.forceDestroy
          ? `Error trying to delete bucket ${thing.id} containing objects without force_destroy set to true`
          : undefined;
      },
      remove: async (thing, world) => {
        for (const object of world.all(objectType).filter((one) => one.inputs.bucket === thing.id))
          world.remove(object);
      },
    },
    [objectType]: {
      api: "storage.googleapis.com",
      id: (inputs) => `${text(inputs.bucket)}-${text(inputs.name)}`,
      computed: (inputs) => {
        const md5 = createHash("md5").update(JSON.stringify(inputs.content ?? inputs.source ?? ""));
        return {
          md5hash: md5.digest("base64"),
          outputName: text(inputs.name),
          generation: 1,
          crc32c: "AAAAAA==",
        };
      },
      missing: (inputs, world) => absent(world, bucketType, inputs.bucket),
    },
    "gcp:storage/bucketIAMMember:BucketIAMMember": {
      ...iamMember((inputs) => `b/${text(inputs.bucket)}`),
      missing: (inputs, world) => absent(world, bucketType, inputs.bucket) ?? unknownMember(inputs, world),
    },
    [repositoryType]: {
      api: "artifactregistry.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/locations/${text(inputs.location)}/repositories/${text(inputs.repositoryId)}`,
      computed: (inputs, id, world) => ({
        name: lastPart(id),
        registryUri: `${text(inputs.location)}-docker.pkg.dev/${world.project}/${text(inputs.repositoryId)}`,
      }),
    },
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": {
      ...iamMember((inputs) => text(inputs.repository)),
      missing: (inputs, world) =>
        absent(world, repositoryType, inputs.repository) ?? unknownMember(inputs, world),
    },
    [clusterType]: {
      api: "container.googleapis.com",
      completed: ["masterAuth", "controlPlaneEndpointsConfig"],
      id: (inputs, world) =>
        `projects/${world.project}/locations/${text(inputs.location)}/clusters/${text(inputs.name)}`,
      computed: (_inputs, id) => ({
        selfLink: `https://container.googleapis.com/v1/${id}`,
        masterVersion: "1.36.3-gke.1000000",
        servicesIpv4Cidr: "10.96.0.0/16",
        labelFingerprint: "1",
      }),
      missing: (inputs, world) =>
        absent(world, networkType, inputs.network) ?? absent(world, subnetworkType, inputs.subnetwork),
      heldBy: (thing) =>
        thing.inputs.deletionProtection === false
          ? undefined
          : "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster deletion.",
      create: (thing) => gke.createCluster(thing),
      update: async (thing) => gke.describe(thing),
      remove: (thing) => gke.removeCluster(thing),
    },
    [poolType]: {
      api: "container.googleapis.com",
      id: (inputs, world) =>
        `projects/${world.project}/locations/${text(inputs.location)}/clusters/${lastPart(inputs.cluster)}/nodePools/${text(inputs.name)}`,
      computed: () => ({
        version: "1.36.3-gke.1000000",
        operation: "",
        instanceGroupUrls: [],
        managedInstanceGroupUrls: [],
      }),
      missing: (inputs, world) => {
        const account = (inputs.nodeConfig as { serviceAccount?: string } | undefined)?.serviceAccount;
        const unknown =
          account && !world.where(accountType, "email", account) ? `Service account ${account}` : undefined;
        return absent(world, clusterType, inputs.cluster) ?? unknown;
      },
      create: (thing) => gke.createPool(thing),
      update: (thing) => gke.updatePool(thing),
      remove: (thing) => gke.removePool(thing),
    },
  };
}

const dataSources: Record<string, DataSource> = {
  "gcp:organizations/getProject:getProject": (args, world) => {
    const projectId = text(args.projectId) || world.project;
    return {
      id: `projects/${projectId}`,
      projectId,
      number: world.projectNumber,
      name: projectId,
      labels: {},
    };
  },
  "gcp:organizations/getClientConfig:getClientConfig": (_args, world) => ({
    ...{
      id: "client",
      accessToken: "no-token",
      project: world.project,
      region: "us-central1",
      zone: "us-central1-a",
    },
  }),
  "gcp:storage/getBucketObjects:getBucketObjects": (args, world) => {
    const found = world
      .all(objectType)
      .filter(
        (thing) =>
          thing.inputs.bucket === args.bucket && text(thing.inputs.name).startsWith(text(args.prefix)),
      );
    const bucketObjects = found.map((thing) => ({
      name: text(thing.inputs.name),
      storageClass: "STANDARD",
      contentType: "",
    }));
    return { id: text(args.bucket), bucket: args.bucket, prefix: args.prefix, bucketObjects };
  },
  "gcp:compute/getImage:getImage": (args, world) => {
    const project = text(args.project) || world.project;
    const id = `projects/${project}/global/images/${text(args.family) || text(args.name)}-v20260818`;
    return { ...selfLink(id), id, project, name: lastPart(id), family: text(args.family), diskSizeGb: 50 };
  },
};

/** What a conversion leaves behind: the files of each model in the bucket, which no stack owns. */
export function convertModels(world: World, modelNames: readonly string[]): void {
  const [bucket] = world.all(bucketType);
  if (!bucket) throw new Error("There is no bucket to put models into");
  for (const model of modelNames) {
    const name = `models/${model}/1/model.savedmodel/saved_model.pb`;
    world.put({
      type: objectType,
      id: `${bucket.id}-${name}`,
      logicalName: "",
      inputs: { bucket: bucket.id, name },
      computed: {},
    });
  }
}

/** The stand-in of the gcp provider. */
export function googleProvider(gke: Gke): ProviderDefinition {
  return { name: "gcp", npmPackage: "@pulumi/gcp", kinds: kinds(gke), dataSources };
}
