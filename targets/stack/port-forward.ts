/** A port on this machine that leads to a pod's port, through the Kubernetes API. */
import { createServer, type Server, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import type { KubeConfig } from "@kubernetes/client-node" with { "resolution-mode": "import" };

export interface PortForwardOptions {
  readonly config: KubeConfig;
  readonly namespace: string;
  /** Name of the pod that a new connection is to reach. */
  readonly podOf: () => Promise<string>;
  readonly podPort: number;
}

/** The part of a WebSocket that is used here. */
interface Closable {
  close(): void;
  on(event: "close" | "error", listener: () => void): unknown;
}

export class PortForwardServer {
  private readonly sockets = new Set<Socket>();
  private lastProblem: string | null = null;

  private constructor(
    private readonly server: Server,
    private readonly options: PortForwardOptions,
    readonly port: number,
  ) {}

  static open(options: PortForwardOptions): Promise<PortForwardServer> {
    const server = createServer();
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as { port: number };
        const forward = new PortForwardServer(server, options, port);
        server.on("connection", (socket) => void forward.connect(socket));
        resolve(forward);
      });
    });
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Why the last connection could not be forwarded; null when it could. */
  get problem(): string | null {
    return this.lastProblem;
  }

  /** Cuts all connections, as a network that went away does; new ones are forwarded again. */
  disconnect(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    this.disconnect();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async connect(socket: Socket): Promise<void> {
    this.sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => this.sockets.delete(socket));
    try {
      const { config, namespace, podOf, podPort } = this.options;
      const { PortForward } = await import("@kubernetes/client-node");
      const pod = await podOf();
      // The kubelet says here that nothing listens in the pod.
      const errors = new PassThrough();
      errors.on("data", (text: Buffer) => this.fail(socket, text.toString("utf8")));
      const tunnel = (await new PortForward(config).portForward(
        namespace,
        pod,
        [podPort],
        socket,
        errors,
        socket,
      )) as unknown as Closable;
      tunnel.on("close", () => socket.destroy());
      tunnel.on("error", () => socket.destroy());
      socket.once("close", () => tunnel.close());
      if (socket.destroyed) tunnel.close();
      this.lastProblem = null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : (error as { message?: string }).message;
      this.fail(socket, reason ?? String(error));
    }
  }

  private fail(socket: Socket, reason: string): void {
    this.lastProblem = reason;
    socket.destroy();
  }
}
