import { readdirSync } from "node:fs";
import { join, sep } from "node:path";
import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { conversionScript } from "./conversion-vm-script";
import { iapSshTag, type Network } from "./network";

export interface ConversionVmArgs {
  readonly project: string;
  /** A zone with the GPU. A change replaces the VM. */
  readonly zone: string;
  readonly network: Network;
  /** Updated in place; the VM is stopped for it. */
  readonly machineType: string;
  /** Accelerator type; the same as serves, because engines run only on the architecture they were built on. */
  readonly gpuType: string;
  /** Deep Learning VM image family of project `deeplearning-platform-release`. */
  readonly imageFamily: string;
  /** A fixed image instead of the family's newest. */
  readonly image?: string;
  /** Boot disk, GB. */
  readonly diskGb: number;
  /** The machine is stopped after running this long, hours. */
  readonly maxLifetimeH: number;
  readonly spot: boolean;
  /** JupyterLab through Google's inverting proxy. */
  readonly jupyterLab: boolean;
  /** E-mail of the VM's service account. A change needs a stop. */
  readonly serviceAccount: pulumi.Input<string>;
  readonly bucketName: pulumi.Input<string>;
  readonly repositoryPrefix: string;
  /** Container image that converts; same month as the serving image. */
  readonly converterImage: string;
  readonly planObject: string;
  /** Folder of the convert package; its code and requirements are uploaded as a zip. */
  readonly packageFolder: string;
  /** Requirements file of the package that is installed in the container first; null for none. */
  readonly requirements: string | null;
  /** Address of the model; only gs:// ones are fetched here, with the VM's identity. Null for the package's default. */
  readonly modelSource: string | null;
  /** gs:// folder of images, or a folder of the bucket. */
  readonly calibrationImages: string;
  readonly heldOutImages: string;
  readonly artefacts: readonly string[];
  readonly variants: readonly { readonly name: string; readonly artefact: string }[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Project of the Deep Learning VM images. */
const imageProject = "deeplearning-platform-release";

/** Object that holds the convert package. */
const packageObject = "conversion/package.zip";

/**
 * The package under its name, `convert/`: code and requirements alone, so that caches which a local run leaves behind do not
 * make a new object.
 */
export function packageArchive(folder: string): pulumi.asset.AssetArchive {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((file) => file.split(sep).join("/"))
    .filter((file) => /^[^.]+\.py$|^requirements\/\w+\.txt$/.test(file))
    .sort();
  return new pulumi.asset.AssetArchive(
    Object.fromEntries(
      files.map((file) => [`convert/${file}`, new pulumi.asset.FileAsset(join(folder, file))]),
    ),
  );
}

/** Driver installation at first boot takes 3 to 5 minutes. */
const driverWaitS = 900;

/**
 * Deep Learning VM that converts the model at boot and stops itself. It has no public address. Start it again to convert
 * again.
 */
export class ConversionVm extends pulumi.ComponentResource {
  public readonly instanceName: pulumi.Output<string>;

  constructor(name: string, args: ConversionVmArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ConversionVm", name, args, opts);
    const { project, zone } = args;
    new gcp.storage.BucketObject(
      `${name}-package`,
      {
        bucket: args.bucketName,
        name: packageObject,
        source: packageArchive(args.packageFolder),
      },
      { parent: this },
    );
    const newest = gcp.compute.getImageOutput(
      { family: args.imageFamily, project: imageProject },
      { parent: this },
    );
    const instance = new gcp.compute.Instance(
      name,
      {
        project,
        zone,
        machineType: args.machineType,
        guestAccelerators: [{ type: args.gpuType, count: 1 }],
        scheduling: {
          // Machines with GPUs cannot be moved while running; the API refuses anything else.
          onHostMaintenance: "TERMINATE",
          automaticRestart: false,
          provisioningModel: args.spot ? "SPOT" : "STANDARD",
          preemptible: args.spot,
          instanceTerminationAction: "STOP",
          maxRunDuration: { seconds: args.maxLifetimeH * 3600 },
        },
        bootDisk: {
          autoDelete: true,
          initializeParams: { image: args.image ?? newest.selfLink, size: args.diskGb, type: "pd-balanced" },
        },
        // No access configuration: no public address. SSH comes through Identity-Aware Proxy.
        networkInterfaces: [{ subnetwork: args.network.subnetwork, nicType: "GVNIC" }],
        tags: [iapSshTag],
        serviceAccount: { email: args.serviceAccount, scopes: ["cloud-platform"] },
        // The driver's kernel module is not signed for Secure Boot.
        shieldedInstanceConfig: {
          enableSecureBoot: false,
          enableVtpm: true,
          enableIntegrityMonitoring: true,
        },
        metadata: {
          "install-nvidia-driver": "True",
          "enable-oslogin": "TRUE",
          "block-project-ssh-keys": "TRUE",
          // The script's output goes to the serial console, and from there to Cloud Logging.
          "serial-port-logging-enable": "TRUE",
          ...(args.jupyterLab ? { "proxy-mode": "service_account" } : {}),
          // As metadata: the instance's own startup-script property would replace the VM at every edit.
          "startup-script": pulumi.output(args.bucketName).apply((bucket) =>
            conversionScript({
              bucket,
              repositoryPrefix: args.repositoryPrefix,
              image: args.converterImage,
              planObject: args.planObject,
              packageObject,
              requirements: args.requirements,
              modelSource: args.modelSource,
              calibrationImages: args.calibrationImages,
              heldOutImages: args.heldOutImages,
              artefacts: args.artefacts,
              variants: args.variants,
              driverWaitS,
            }),
          ),
        },
        allowStoppingForUpdate: true,
        labels: { ...args.labels },
      },
      // The family moves on; a new image is taken when the VM is replaced, not at any up.
      { parent: this, ignoreChanges: ["bootDisk.initializeParams.image"] },
    );
    this.instanceName = instance.name;
    this.registerOutputs({ instanceName: this.instanceName });
  }
}
