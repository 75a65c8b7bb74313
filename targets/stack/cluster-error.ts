/** What keeps a sweep from the Kubernetes API of a stack, in words that say what to do. */
import type { StackOutputs } from "../../stack/outputs";
import { TargetError } from "../target-error";
import { kubeStatus } from "./kube";

/** A call and where it goes, for its message. */
export interface ClusterCall {
  readonly stack: string;
  readonly cluster: Pick<StackOutputs["cluster"], "server">;
  /** What is to be done, as an infinitive: "list pods in triton". */
  readonly action: string;
}

const loginPlugin = "gke-gcloud-auth-plugin";
/** Longer reasons are cut, characters. */
const mostCharacters = 400;

/** Runs a call of the Kubernetes API. @throws TargetError when it does not get through or is refused; everything else as it is */
export async function explained<T>(call: ClusterCall, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const problem = clusterProblem(error, call);
    throw problem === null ? error : new TargetError(problem, { cause: error });
  }
}

/** The reason and what to do about it, in one line; null for an error that does not come from the way to the API. */
export function clusterProblem(error: unknown, { stack, cluster, action }: ClusterCall): string | null {
  if (!(error instanceof Error) || error instanceof TargetError) return null;
  const { code, path } = error as { code?: unknown; path?: unknown };
  if (code === "ENOENT" && path === loginPlugin)
    return `stack ${stack} needs ${loginPlugin} to log in to its cluster: gcloud components install ${loginPlugin}`;
  const status = kubeStatus(error);
  if (status !== null) return refusal(status, stack, action);
  const text = error.message.replaceAll(/\s+/g, " ").trim();
  const reason = (/failed, reason: (.+)$/.exec(text)?.[1] ?? text).slice(0, mostCharacters);
  if (error.name === "FetchError" || typeof code === "string")
    return (
      `the Kubernetes API of stack ${stack} at ${cluster.server} cannot be reached (${reason}): ` +
      `check the network, and whether the stack's controlPlaneAccess lets this machine in`
    );
  // The login plugin's own words; it runs gcloud.
  return /gcloud|credential|log ?in/i.test(text)
    ? `the login to the cluster of stack ${stack} failed: gcloud auth login (${reason})`
    : null;
}

function refusal(status: number, stack: string, action: string): string {
  const where = `in the cluster of stack ${stack}`;
  switch (status) {
    case 401:
      return `could not ${action} ${where}, which does not accept your login: gcloud auth login`;
    case 403:
      return `you may not ${action} ${where}: add yourself to tuneMembers in the stack's configuration, then pulumi up`;
    case 404:
      return `could not ${action} ${where}: it is not there; if the cluster was changed by hand: pulumi up --refresh --stack ${stack}`;
    default:
      return `could not ${action} ${where}: the Kubernetes API answers with status ${status}; try again in a moment`;
  }
}
