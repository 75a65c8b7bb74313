import * as gcp from "@pulumi/gcp";
import * as pulumi from "@pulumi/pulumi";

export interface ProjectServicesArgs {
  /** Google Cloud project id. */
  readonly project: string;
  /** API names, e.g. `container.googleapis.com`. A change adds or removes single services. */
  readonly services: readonly string[];
}

/** APIs that the stack's own resources need. */
export const stackServices: readonly string[] = [
  "artifactregistry.googleapis.com",
  "cloudresourcemanager.googleapis.com",
  "compute.googleapis.com",
  "container.googleapis.com",
  "iam.googleapis.com",
  "iap.googleapis.com",
  "logging.googleapis.com",
  "monitoring.googleapis.com",
  "storage.googleapis.com",
];

/** Enables the Google APIs that the other components use. Everything that calls an API depends on it. */
export class ProjectServices extends pulumi.ComponentResource {
  constructor(name: string, args: ProjectServicesArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:ProjectServices", name, args, opts);
    for (const service of args.services) {
      new gcp.projects.Service(
        `${name}-${service.replace(".googleapis.com", "")}`,
        {
          project: args.project,
          service,
          // Other stacks of the project may use the API: destroying this one must not switch it off for them.
          disableOnDestroy: false,
          disableDependentServices: false,
        },
        { parent: this },
      );
    }
    this.registerOutputs({ services: args.services });
  }
}
