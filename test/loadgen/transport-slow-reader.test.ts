/**
 * The lean transport uses a request's buffer again at once when the kernel has taken all of it, and later when the socket still holds a part: at
 * a server that begins late to read, no request may change under another one's hand.
 */
import { randomBytes } from "node:crypto";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { LeanTransport } from "../../loadgen/transport-lean/lean-transport";
import { selfSigned } from "./support/certificate";
import { prefixed, RawConnection } from "./support/raw-server";

const REQUESTS = 48;
const payloads = [randomBytes(600_000), randomBytes(250_000), randomBytes(40_000)];
const identity = selfSigned("server.example");

it.each(["plain", "TLS"] as const)("%s: every request arrives as it was sent", async (kind) => {
  const received = new Map<number, Buffer[]>();
  let connection: RawConnection | undefined;
  const serve = (socket: Socket): void => {
    connection = new RawConnection(socket);
    connection.onContent = (streamId, part) => {
      const parts = received.get(streamId) ?? [];
      received.set(streamId, [...parts, Buffer.from(part)]);
    };
    connection.greet();
  };
  const server =
    kind === "plain"
      ? createTcpServer(serve)
      : createTlsServer({ cert: identity.certPem, key: identity.keyPem, ALPNProtocols: ["h2"] }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const transport = new LeanTransport({
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    payloads,
    connections: 1,
    ...(kind === "plain" ? {} : { tls: { caPem: identity.certPem, serverName: "server.example" } }),
  });
  onTestFinished(async () => {
    await transport.close();
    connection?.socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await transport.connect();
  connection!.socket.pause();
  const outcomes = Array.from({ length: REQUESTS }, (_, i) => transport.infer(i % payloads.length, 30_000));
  // Meanwhile the kernel's buffers fill up, and the rest waits in the client.
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(received.size).toBe(0);
  connection!.socket.resume();
  expect((await Promise.all(outcomes)).map(({ status }) => status)).toEqual(Array(REQUESTS).fill(0));
  expect(connection!.requests).toEqual(Array.from({ length: REQUESTS }, (_, i) => 2 * i + 1));
  for (const [i, streamId] of connection!.requests.entries())
    expect(Buffer.concat(received.get(streamId)!).equals(prefixed(payloads[i % payloads.length]!))).toBe(
      true,
    );
});
