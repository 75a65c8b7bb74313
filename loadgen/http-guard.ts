/** Who may call the controller over HTTP: the right host name, no page of another origin, and the token. */
import { timingSafeEqual } from "node:crypto";
import type { FastifyInstance } from "fastify";

export interface HttpGuardOptions {
  /** Secret that every call must bring as `Authorization: Bearer TOKEN`. */
  readonly token: string;
  /** Host names under which the controller may be called beside localhost. */
  readonly allowedHosts: readonly string[];
  /** Paths that need no token: health, metrics, and the console's files, which hold no secrets. */
  readonly openPaths: ReadonlySet<string>;
  /** Paths that may be called under any host name: probes and scrapers use the pod's address. */
  readonly anyHostPaths: ReadonlySet<string>;
}

/** Through a port-forward the host is this machine; in the cluster it is the service. */
const LOCAL_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

export function addHttpGuard(app: FastifyInstance, options: HttpGuardOptions): void {
  const expected = Buffer.from(`Bearer ${options.token}`);
  const hosts = new Set([...LOCAL_HOSTS, ...options.allowedHosts]);

  app.addHook("onRequest", async (request, reply) => {
    const path = request.url.replace(/\?.*$/, "");
    if (options.anyHostPaths.has(path)) return;
    // A page of another name that points to this machine (DNS rebinding) says its own name here.
    const { host, origin } = request.headers;
    const name = (host ?? "").replace(/:\d+$/, "");
    if (!hosts.has(name))
      return reply
        .code(421)
        .send({ error: `this controller is not called ${name || "nothing"}: start it with --allow-host` });
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`)
      return reply.code(403).send({ error: "pages of another origin may not call the controller" });
    if (options.openPaths.has(path)) return;
    const given = Buffer.from(request.headers.authorization ?? "");
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      return reply.code(401).send({ error: "the call needs the load generator's token" });
  });
}
