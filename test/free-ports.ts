/** Ports for programs that cannot choose one themselves. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below 32768, where Linux takes the ports of outgoing connections from: there one may be taken before its program listens. */
const [FIRST, LAST] = [15_000, 32_000];

/** Free TCP ports on loopback, all different. Chosen by chance, so that several processes hardly choose the same. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, LAST);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
