/** Asks a real API server whether it would take the stack's manifests. */
import type { Stack } from "@pulumi/pulumi/automation";
import type { KubeApi, KubeObject } from "./kube-api";

/** A manifest as the program gave it. */
export interface Manifest {
  /** Name of the resource in the program. */
  resource: string;
  object: KubeObject;
}

interface ExportedResource {
  urn: string;
  type: string;
  inputs?: Record<string, unknown>;
}

/** In an export that shows secrets, each is an object with its JSON. */
function shown(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shown);
  if (typeof value !== "object" || value === null) return value;
  if ("plaintext" in value) return JSON.parse(String(value.plaintext)) as unknown;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, shown(entry)]));
}

/** All Kubernetes manifests of a deployed stack. */
export async function manifestsOf(stack: Stack): Promise<Manifest[]> {
  const exported = await stack.exportStack();
  const { resources } = exported.deployment as { resources: ExportedResource[] };
  return resources
    .filter((resource) => resource.type.startsWith("kubernetes:"))
    .map((resource) => ({
      resource: resource.urn.split("::").at(-1) ?? "",
      object: shown(resource.inputs) as KubeObject,
    }));
}

/** Collections of the API by `apiVersion/kind`. */
async function collections(
  api: KubeApi,
  apiVersion: string,
): Promise<{ name: string; kind: string; namespaced: boolean }[]> {
  const path = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return (await api.call<{ resources: { name: string; kind: string; namespaced: boolean }[] }>("GET", path))
    .resources;
}

/** Path of an object in the API. */
export async function pathOf(api: KubeApi, object: KubeObject): Promise<string> {
  const apiVersion = object.apiVersion ?? "v1";
  const found = (await collections(api, apiVersion)).find(
    (one) => one.kind === object.kind && !one.name.includes("/"),
  );
  if (!found) throw new Error(`The API server has no ${apiVersion} ${object.kind}`);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = found.namespaced ? `/namespaces/${object.metadata.namespace ?? "default"}` : "";
  return `${root}${scope}/${found.name}/${object.metadata.name}`;
}

/** What the API server says to a manifest with strict field validation; undefined when it takes it. Nothing is changed. */
export async function strictRefusal(api: KubeApi, manifest: KubeObject): Promise<string | undefined> {
  const path = await pathOf(api, manifest);
  const query = "dryRun=All&fieldValidation=Strict&fieldManager=strict-check&force=true";
  try {
    await api.patch(`${path}?${query}`, manifest, "apply");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What Pod Security says to a pod template in a namespace with the level `restricted`; undefined when it admits it. */
export async function restrictedRefusal(api: KubeApi, template: KubeObject): Promise<string | undefined> {
  const namespace = "restricted-check";
  if (!(await api.get(`/api/v1/namespaces/${namespace}`))) {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await api.create("/api/v1/namespaces", { metadata: { name: namespace, labels } });
    await api.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: "any" } });
  }
  const spec = { ...template.spec, serviceAccountName: "any", serviceAccount: undefined };
  try {
    await api.create(`/api/v1/namespaces/${namespace}/pods?dryRun=All`, {
      metadata: { name: "check" },
      spec,
    });
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
