import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface ImageRegistryArgs {
  readonly project: string;
  /** A change replaces the registry. */
  readonly region: string;
  /** Repository id, unique in project and region. A change replaces the registry. */
  readonly repositoryId: string;
  /** E-mail of the nodes' service account, which pulls. */
  readonly pullerEmail: pulumi.Input<string>;
  readonly labels: Readonly<Record<string, string>>;
}

/** Artifact Registry for the stack's own images: tags never move, old versions go away. */
export class ImageRegistry extends pulumi.ComponentResource {
  /** Prefix of image names, `REGION-docker.pkg.dev/PROJECT/REPOSITORY`. */
  public readonly url: pulumi.Output<string>;

  constructor(name: string, args: ImageRegistryArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ImageRegistry", name, args, opts);
    const repository = new gcp.artifactregistry.Repository(
      name,
      {
        project: args.project,
        location: args.region,
        repositoryId: args.repositoryId,
        format: "DOCKER",
        description: "Images of the load generator",
        dockerConfig: { immutableTags: true },
        cleanupPolicyDryRun: false,
        cleanupPolicies: [
          { id: "keep-recent", action: "KEEP", mostRecentVersions: { keepCount: 10 } },
          { id: "delete-old", action: "DELETE", condition: { olderThan: "2592000s" } },
        ],
        labels: { ...args.labels },
      },
      { parent: this },
    );
    new gcp.artifactregistry.RepositoryIamMember(
      `${name}-nodes-pull`,
      {
        project: args.project,
        location: args.region,
        repository: repository.name,
        role: "roles/artifactregistry.reader",
        member: pulumi.interpolate`serviceAccount:${args.pullerEmail}`,
      },
      { parent: this },
    );
    this.url = pulumi.interpolate`${args.region}-docker.pkg.dev/${args.project}/${repository.repositoryId}`;
    this.registerOutputs({ url: this.url });
  }
}
