/** A TCP proxy that can be cut: it swallows bytes without a word, as a split network does, and lets them through again. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export class TcpProxy {
  private isCut = false;
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  static async listen(targetPort: () => number): Promise<TcpProxy> {
    const server = createServer();
    const proxy = new TcpProxy(server);
    server.on("connection", (near) => {
      const far = connect(targetPort(), "127.0.0.1");
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        proxy.sockets.add(one);
        one.on("data", (chunk) => {
          if (!proxy.isCut) other.write(chunk);
        });
        one.on("error", () => other.destroy());
        one.on("close", () => {
          proxy.sockets.delete(one);
          other.destroy();
        });
      }
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** From now on nothing arrives, in either direction, and nobody is told. */
  cut(): void {
    this.isCut = true;
  }

  /** Connections of the time of the cut are dead; new ones work. */
  heal(): void {
    this.isCut = false;
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
