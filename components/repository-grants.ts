import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

/** A Kubernetes service account. */
export interface KubernetesServiceAccount {
  readonly namespace: string;
  readonly name: string;
}

export interface RepositoryGrantsArgs {
  readonly project: string;
  readonly bucketName: pulumi.Input<string>;
  /** Kubernetes service accounts that read the repository. */
  readonly readers: readonly KubernetesServiceAccount[];
  /** E-mails of Google service accounts that write artefacts. */
  readonly writers: readonly pulumi.Input<string>[];
}

/**
 * objectViewer lists and reads objects; legacyBucketReader reads the bucket's metadata, which Triton does before listing.
 * Without the second the server falls back to anonymous access and reports a confusing 401.
 */
export const readerRoles: readonly string[] = [
  "roles/storage.objectViewer",
  "roles/storage.legacyBucketReader",
];

/** Converters read, write and overwrite artefacts; they cannot change the bucket. */
export const writerRoles: readonly string[] = [
  "roles/storage.objectUser",
  "roles/storage.legacyBucketReader",
];

/** IAM member of one Kubernetes service account, without a Google service account in between. */
export function workloadPrincipal(
  projectNumber: string,
  project: string,
  { namespace, name }: KubernetesServiceAccount,
): string {
  const pool = `projects/${projectNumber}/locations/global/workloadIdentityPools/${project}.svc.id.goog`;
  return `principal://iam.googleapis.com/${pool}/subject/ns/${namespace}/sa/${name}`;
}

/**
 * Who may use the model repository. Depends on a cluster: a project's workload identity pool comes into being with its
 * first one. Members are added to the bucket's policy, never set as the whole policy.
 */
export class RepositoryGrants extends pulumi.ComponentResource {
  constructor(name: string, args: RepositoryGrantsArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:RepositoryGrants", name, args, opts);
    const number = gcp.organizations.getProjectOutput({ projectId: args.project }, { parent: this }).number;
    for (const reader of args.readers) {
      const member = number.apply((projectNumber) => workloadPrincipal(projectNumber, args.project, reader));
      this.grant(`${name}-${reader.namespace}-${reader.name}`, args.bucketName, member, readerRoles);
    }
    args.writers.forEach((email, index) => {
      this.grant(
        `${name}-writer-${index}`,
        args.bucketName,
        pulumi.interpolate`serviceAccount:${email}`,
        writerRoles,
      );
    });
    this.registerOutputs({});
  }

  private grant(
    name: string,
    bucket: pulumi.Input<string>,
    member: pulumi.Input<string>,
    roles: readonly string[],
  ): void {
    for (const role of roles) {
      const suffix = role.split(".")[1];
      new gcp.storage.BucketIAMMember(`${name}-${suffix}`, { bucket, role, member }, { parent: this });
    }
  }
}
