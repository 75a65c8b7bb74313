/** What an exported Pulumi state (`pulumi stack export`) tells about the deployment. JSON only; no Pulumi. */
import { z } from "zod";
import { noEvidence, type Names } from "./evidence";

const stateSchema = z.object({
  deployment: z.object({
    resources: z
      .array(
        z.object({
          type: z.string(),
          inputs: z.record(z.string(), z.unknown()).optional(),
          outputs: z.record(z.string(), z.unknown()).optional(),
        }),
      )
      .nullish(),
  }),
});

/** Where to look for the deployment's objects. */
export interface DeploymentState {
  /** Kubeconfig text; undefined while there is no cluster yet. */
  kubeconfig: string | undefined;
  /** Namespaces that the stack has made. */
  namespaces: string[];
  names: Names;
}

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Secrets in an export with `--show-secrets` are objects with the plain value as JSON. */
function plain(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("plaintext" in value)) return value;
  return JSON.parse(String(value.plaintext));
}

/**
 * @param exported parsed JSON of `pulumi stack export --show-secrets`
 * @throws Error when it is no export of a stack
 */
export function readState(exported: unknown): DeploymentState {
  const parsed = stateSchema.safeParse(exported);
  if (!parsed.success) throw new Error("This is no state as `pulumi stack export` writes it.");
  const resources = parsed.data.deployment.resources ?? [];
  const of = (type: string) => resources.filter((resource) => resource.type === type);
  const [provider] = of("pulumi:providers:kubernetes");
  const [cluster] = of("gcp:container/cluster:Cluster");
  const [bucket] = of("gcp:storage/bucket:Bucket");
  const namespaces = of("kubernetes:core/v1:Namespace").flatMap(({ inputs }) => {
    const metadata = inputs?.metadata as { name?: unknown } | undefined;
    return text(metadata?.name) ?? [];
  });
  return {
    kubeconfig: text(plain(provider?.inputs?.kubeconfig)),
    namespaces,
    names: {
      project: text(cluster?.inputs?.project) ?? text(bucket?.inputs?.project) ?? noEvidence.names.project,
      location: text(cluster?.inputs?.location) ?? noEvidence.names.location,
      bucket: text(bucket?.inputs?.name) ?? noEvidence.names.bucket,
    },
  };
}
