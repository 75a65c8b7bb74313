import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";
import { userError } from "./user-error";

/** Text files of one model folder, as Triton reads them. The model's own files are put there by the conversion. */
export interface ModelFolder {
  /** Folder and model name in Triton. */
  readonly name: string;
  /** File name in the folder to content, e.g. `config.pbtxt`. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ModelRepositoryArgs {
  readonly project: string;
  /** Bucket location, e.g. the region of the cluster. A change replaces the bucket. */
  readonly location: string;
  /** Name of an existing bucket to use instead of making one. */
  readonly existingBucket?: string;
  /** Folder of the repository in the bucket, without slashes at the ends. */
  readonly prefix: string;
  readonly models: readonly ModelFolder[];
  /** JSON text for the conversion VM: which artefacts to make and where they go; uploaded as `conversion/plan.json`. */
  readonly conversionPlan: string;
  /** Keep the bucket and its objects when the stack is destroyed or the bucket replaced. */
  readonly protect: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/** Object that holds the conversion plan. */
export const conversionPlanObject = "conversion/plan.json";

/** Days that an overwritten or deleted object can be brought back. */
const keepOldVersionsDays = 30;

/** The model repository: a locked-down, versioned bucket and the generated configuration of every variant. */
export class ModelRepository extends pulumi.ComponentResource {
  public readonly bucketName: pulumi.Output<string>;
  /** What Triton is started with, `gs://BUCKET/PREFIX`. */
  public readonly url: pulumi.Output<string>;
  private readonly prefix: string;

  constructor(name: string, args: ModelRepositoryArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ModelRepository", name, args, opts);
    this.prefix = args.prefix;
    this.bucketName =
      args.existingBucket === undefined
        ? this.bucket(name, args).name
        : gcp.storage.getBucketOutput({ name: args.existingBucket, project: args.project }, { parent: this })
            .name;
    this.url = pulumi.interpolate`gs://${this.bucketName}/${args.prefix}`;
    for (const model of args.models) {
      for (const [file, content] of Object.entries(model.files)) {
        new gcp.storage.BucketObject(
          `${name}-${model.name}-${file}`,
          {
            bucket: this.bucketName,
            name: `${args.prefix}/${model.name}/${file}`,
            content,
            contentType: "text/plain",
          },
          { parent: this },
        );
      }
    }
    new gcp.storage.BucketObject(
      `${name}-conversion-plan`,
      {
        bucket: this.bucketName,
        name: conversionPlanObject,
        content: args.conversionPlan,
        contentType: "application/json",
      },
      { parent: this },
    );
    this.registerOutputs({ bucketName: this.bucketName, url: this.url });
  }

  /**
   * The repository's URL, once a model's own files are there.
   * @throws Error (as a failed output) that says to convert first, instead of a server that restarts until the update ends
   */
  public urlWith(modelName: string): pulumi.Output<string> {
    const versions = pulumi.interpolate`${this.prefix}/${modelName}/1/`;
    const found = gcp.storage.getBucketObjectsOutput(
      { bucket: this.bucketName, prefix: versions },
      { parent: this },
    );
    return pulumi.all([found.bucketObjects, this.url]).apply(([objects, url]) => {
      if (objects.length > 0) return url;
      throw userError(
        `${url}/${modelName}/1/ is empty: convert the model first (the output conversionVm says how), or set asleep to true until then.`,
      );
    });
  }

  private bucket(name: string, args: ModelRepositoryArgs): gcp.storage.Bucket {
    return new gcp.storage.Bucket(
      name,
      {
        project: args.project,
        location: args.location,
        uniformBucketLevelAccess: true,
        publicAccessPrevention: "enforced",
        versioning: { enabled: true },
        softDeletePolicy: { retentionDurationSeconds: 7 * 24 * 3600 },
        lifecycleRules: [
          { action: { type: "Delete" }, condition: { daysSinceNoncurrentTime: keepOldVersionsDays } },
          { action: { type: "AbortIncompleteMultipartUpload" }, condition: { age: 1 } },
        ],
        forceDestroy: !args.protect,
        labels: { ...args.labels },
      },
      { parent: this, protect: args.protect },
    );
  }
}
