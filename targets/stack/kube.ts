/** The few calls of the Kubernetes API that a sweep makes: pods, one secret, one lease, port-forwards. Needs no kubectl. */
import type { CoordinationV1Api, CoreV1Api, KubeConfig, V1Pod } from "@kubernetes/client-node" with {
  "resolution-mode": "import",
};
import type { StackOutputs } from "../../stack/outputs";
import { PortForwardServer } from "./port-forward";

/** What a sweep has to know of a pod. */
export interface PodInfo {
  readonly name: string;
  readonly uid: string;
  readonly ip: string | null;
  readonly node: string | null;
  readonly isReady: boolean;
  /** When its containers were started last; changes when one restarts in place. */
  readonly startedAt: string;
}

/** Who holds a lease and until when, Unix milliseconds. */
export interface Lease {
  readonly holder: string;
  readonly renewedMs: number;
  readonly endsMs: number;
  /** Changes with every write. */
  readonly version: string;
}

/** HTTP status of a refused call; null when the API server was not reached. */
export function kubeStatus(error: unknown): number | null {
  const code = (error as { code?: unknown }).code;
  return typeof code === "number" ? code : null;
}

export class Kube {
  private constructor(
    private readonly config: KubeConfig,
    private readonly core: CoreV1Api,
    private readonly coordination: CoordinationV1Api,
    /** The present with microseconds, as leases want it. */
    private readonly microTime: () => Date,
  ) {}

  /**
   * Credentials come from Google's login plugin, which is run again when they expire: a sweep may be longer than a token lives.
   */
  static async connect(cluster: StackOutputs["cluster"]): Promise<Kube> {
    // The client is an ES module; this project is not.
    const client = await import("@kubernetes/client-node");
    const config = new client.KubeConfig();
    const { name, server, caCertificate } = cluster;
    config.loadFromOptions({
      clusters: [{ name, server, skipTLSVerify: false, ...(caCertificate ? { caData: caCertificate } : {}) }],
      users: [
        {
          name,
          exec: {
            apiVersion: "client.authentication.k8s.io/v1beta1",
            command: "gke-gcloud-auth-plugin",
            interactiveMode: "Never",
            provideClusterInfo: true,
          },
        },
      ],
      contexts: [{ name, cluster: name, user: name }],
      currentContext: name,
    });
    return new Kube(
      config,
      config.makeApiClient(client.CoreV1Api),
      config.makeApiClient(client.CoordinationV1Api),
      () => new client.V1MicroTime(),
    );
  }

  /** Pods that are not on their way out, by name. */
  async pods(namespace: string, labelSelector: string): Promise<PodInfo[]> {
    const { items } = await this.core.listNamespacedPod({ namespace, labelSelector });
    return items
      .filter(({ metadata }) => metadata?.deletionTimestamp === undefined)
      .map(podInfo)
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Image and kernel of a node's machine, which decide about the GPU driver where the node's image or Google brings it. */
  async machineImage(node: string): Promise<string> {
    const { status } = await this.core.readNode({ name: node });
    const { osImage = "?", kernelVersion = "?", kubeletVersion = "?" } = status?.nodeInfo ?? {};
    return `${osImage}, kernel ${kernelVersion}, kubelet ${kubeletVersion}`;
  }

  async secret(namespace: string, name: string, key: string): Promise<string> {
    const { data } = await this.core.readNamespacedSecret({ namespace, name });
    const value = data?.[key];
    if (value === undefined) throw new Error(`secret ${namespace}/${name} has no key ${key}`);
    return Buffer.from(value, "base64").toString("utf8");
  }

  /**
   * Opens a port on this machine that leads to a pod's. Every connection is forwarded by itself, so a broken one is opened again by
   * whoever connects again.
   * @param podOf name of the pod, asked for at every connection
   */
  forward(namespace: string, podOf: () => Promise<string>, podPort: number): Promise<PortForwardServer> {
    return PortForwardServer.open({ config: this.config, namespace, podOf, podPort });
  }

  async readLease(namespace: string, name: string): Promise<Lease> {
    const { metadata, spec } = await this.coordination.readNamespacedLease({ namespace, name });
    const renewedMs = new Date(spec?.renewTime ?? 0).getTime();
    return {
      holder: spec?.holderIdentity ?? "",
      renewedMs,
      endsMs: renewedMs + (spec?.leaseDurationSeconds ?? 0) * 1000,
      version: metadata?.resourceVersion ?? "",
    };
  }

  /** Refused (409) when there is one. */
  async createLease(namespace: string, name: string, holder: string, durationS: number): Promise<void> {
    await this.coordination.createNamespacedLease({
      namespace,
      body: leaseBody(name, holder, durationS, this.microTime()),
    });
  }

  /** Refused (409) when it has changed since `version` was read. */
  async replaceLease(
    namespace: string,
    name: string,
    holder: string,
    durationS: number,
    version: string,
  ): Promise<void> {
    const body = leaseBody(name, holder, durationS, this.microTime());
    const metadata = { name, resourceVersion: version };
    await this.coordination.replaceNamespacedLease({ namespace, name, body: { ...body, metadata } });
  }

  async deleteLease(namespace: string, name: string): Promise<void> {
    await this.coordination.deleteNamespacedLease({ namespace, name });
  }
}

function leaseBody(name: string, holder: string, durationS: number, now: Date) {
  return {
    metadata: { name },
    spec: { holderIdentity: holder, leaseDurationSeconds: durationS, acquireTime: now, renewTime: now },
  };
}

function podInfo({ metadata, spec, status }: V1Pod): PodInfo {
  const starts = (status?.containerStatuses ?? []).map(
    ({ state }) => state?.running?.startedAt?.toISOString() ?? "",
  );
  return {
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    ip: status?.podIP ?? null,
    node: spec?.nodeName ?? null,
    isReady: (status?.conditions ?? []).some(
      (condition) => condition.type === "Ready" && condition.status === "True",
    ),
    startedAt: [status?.startTime?.toISOString() ?? "", ...starts].join(" "),
  };
}
