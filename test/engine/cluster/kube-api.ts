/** The few calls of the Kubernetes API that the suite makes for itself, over HTTPS with the cluster's own CA. */
import { Agent, request } from "node:https";

/** Any object of the API. The suite reads single fields; what is not there is undefined. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { kind: string; name: string }[];
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

/** A refused call, with the server's own reason. */
export class KubeApiError extends Error {
  constructor(
    readonly status: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

class StaleConnection extends Error {}

const patchTypes = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** Client of one API server. */
export class KubeApi {
  private readonly agent: Agent;

  constructor(
    readonly port: number,
    caPem: string,
    private readonly token: string,
  ) {
    this.agent = new Agent({ ca: caPem, keepAlive: true });
  }

  /** Any call. `path` starts with /api or /apis and may carry a query. */
  async call<T = KubeObject>(
    method: string,
    path: string,
    body?: unknown,
    contentType = "application/json",
  ): Promise<T> {
    for (;;) {
      try {
        return await this.once<T>(method, path, body, contentType);
      } catch (error) {
        // The server ends connections that are idle for long, perhaps just when one is used again.
        if (!(error instanceof StaleConnection)) throw error;
      }
    }
  }

  private once<T>(method: string, path: string, body: unknown, contentType: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = request(
        {
          ...{ host: "127.0.0.1", port: this.port, method, path, agent: this.agent, timeout: 20_000 },
          headers: {
            authorization: `Bearer ${this.token}`,
            "content-type": contentType,
            accept: "application/json",
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            const status = response.statusCode ?? 0;
            let value: unknown = text;
            if (response.headers["content-type"]?.includes("json")) value = JSON.parse(text);
            if (status < 300) return resolve(value as T);
            const failure = value as { message?: string; reason?: string };
            reject(new KubeApiError(status, failure.reason ?? "", failure.message ?? text));
          });
        },
      );
      call.on("error", (error: NodeJS.ErrnoException) =>
        reject(call.reusedSocket && error.code === "ECONNRESET" ? new StaleConnection() : error),
      );
      call.on("timeout", () => call.destroy(new Error(`${method} ${path}: no answer within 20 s`)));
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  /** Items of a collection path such as `/api/v1/pods`. */
  async list(path: string): Promise<KubeObject[]> {
    return (await this.call<{ items: KubeObject[] }>("GET", path)).items;
  }

  /** One object, or undefined when there is none. */
  async get(path: string): Promise<KubeObject | undefined> {
    try {
      return await this.call("GET", path);
    } catch (error) {
      if (error instanceof KubeApiError && error.status === 404) return undefined;
      throw error;
    }
  }

  create(collection: string, body: object): Promise<KubeObject> {
    return this.call("POST", collection, body);
  }

  patch(path: string, body: object, type: keyof typeof patchTypes = "merge"): Promise<KubeObject> {
    return this.call("PATCH", path, body, patchTypes[type]);
  }

  /** Deletes; an object that is not there is no error. */
  async delete(path: string): Promise<void> {
    try {
      await this.call("DELETE", path);
    } catch (error) {
      if (!(error instanceof KubeApiError && error.status === 404)) throw error;
    }
  }

  /** Records an event on an object, as a component of the cluster would. */
  async event(
    on: KubeObject,
    type: "Normal" | "Warning",
    reason: string,
    message: string,
    component: string,
  ): Promise<void> {
    const namespace = on.metadata.namespace ?? "default";
    const now = new Date().toISOString();
    await this.create(`/api/v1/namespaces/${namespace}/events`, {
      metadata: { generateName: `${on.metadata.name}.`, namespace },
      involvedObject: {
        kind: on.kind ?? "Pod",
        apiVersion: "v1",
        namespace,
        name: on.metadata.name,
        uid: on.metadata.uid,
      },
      ...{ type, reason, message, count: 1, firstTimestamp: now, lastTimestamp: now, source: { component } },
    });
  }

  close(): void {
    this.agent.destroy();
  }
}
