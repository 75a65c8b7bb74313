import * as dockerBuild from "@pulumi/docker-build";
import * as pulumi from "@pulumi/pulumi";

export interface LoadGeneratorImageArgs {
  /** A ready image, with an exact tag or digest; undefined builds one from this project's Dockerfile. */
  readonly given?: string;
  /** Registry prefix to push to. */
  readonly registryUrl: pulumi.Input<string>;
  /** Folder with the project, the build context. */
  readonly contextFolder: string;
  /** Tag of the built image. Tags are immutable in the registry, so it must change with the content. */
  readonly tag: string;
}

/** The load generator's image: built and pushed by BuildKit, or a given one. */
export class LoadGeneratorImage extends pulumi.ComponentResource {
  /** Image reference; a built one carries its digest. */
  public readonly reference: pulumi.Output<string>;

  constructor(name: string, args: LoadGeneratorImageArgs, opts?: pulumi.ComponentResourceOptions) {
    super("triton-slo:index:LoadGeneratorImage", name, args, opts);
    if (args.given === undefined) {
      const image = new dockerBuild.Image(
        name,
        {
          context: { location: args.contextFolder },
          dockerfile: { location: `${args.contextFolder}/loadgen/Dockerfile` },
          platforms: ["linux/amd64"],
          tags: [pulumi.interpolate`${args.registryUrl}/load-generator:${args.tag}`],
          push: true,
          // A preview must not need Docker.
          buildOnPreview: false,
        },
        { parent: this },
      );
      this.reference = image.ref;
    } else {
      this.reference = pulumi.output(args.given);
    }
    this.registerOutputs({ reference: this.reference });
  }
}
