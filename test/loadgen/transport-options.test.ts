/** A connection for every request, and TLS: the same behaviour on both transports. */
import { createServer } from "node:tls";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { GrpcStatusCode as Status } from "../../kserve/status";
import { createTransport } from "../../loadgen/create-transport";
import type { TlsOptions } from "../../loadgen/load-spec";
import type { TransportOptions } from "../../loadgen/transport";
import { selfSigned } from "./support/certificate";
import { digestOf, GrpcServer, message } from "./support/grpc-server";

const deadlineMs = 5000;
const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).reverse()) await one.close();
});

function kept<T extends { close(): Promise<void> }>(one: T): T {
  closing.push(one);
  return one;
}

describe.each(["lean", "grpc-js"] as const)("%s", (kind) => {
  const create = (options: TransportOptions) => kept(createTransport(kind, options));

  describe("a new connection for every request", () => {
    const newConnectionPerRequest = true;

    it("is one: as many connections as requests, none is left open", async () => {
      const server = kept(await GrpcServer.listen());
      const sent = message({ do: "digest", delayMs: 5 }, 602_112);
      const transport = create({ address: server.address, payloads: [sent], newConnectionPerRequest });
      await transport.connect();
      const before = server.sessionsSeen;
      const outcomes = await Promise.all(Array.from({ length: 8 }, () => transport.infer(0, deadlineMs)));
      for (const { status, reply } of outcomes) {
        expect(status).toBe(Status.OK);
        expect(JSON.parse(reply!.toString())).toEqual(digestOf(sent));
      }
      expect(server.sessionsSeen - before).toBe(8);
      expect(transport.inFlight).toBe(0);
      while (server.sessions.size > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    });

    it("errors, deadlines and a server that is gone are the outcomes that they always are", async () => {
      const server = await GrpcServer.listen();
      const { address } = server;
      const payloads = [
        message({ do: "error", status: Status.NOT_FOUND, message: "no such model", trailersOnly: true }),
        message({ do: "silence" }),
      ];
      const transport = create({ address, payloads, newConnectionPerRequest });
      expect(await transport.infer(0, deadlineMs)).toMatchObject({
        status: Status.NOT_FOUND,
        message: "no such model",
      });
      expect((await transport.infer(1, 150)).status).toBe(Status.DEADLINE_EXCEEDED);
      await server.close();
      expect((await transport.infer(0, deadlineMs)).status).toBe(Status.UNAVAILABLE);
      expect(transport.inFlight).toBe(0);
      if (kind === "lean") await expect(transport.connect()).rejects.toThrow(`cannot connect to ${address}`);
    });

    it("close ends what is in flight, and what comes later, as CANCELLED", async () => {
      const server = kept(await GrpcServer.listen());
      const payloads = [message({ do: "silence" })];
      const transport = create({ address: server.address, payloads, newConnectionPerRequest });
      const pending = transport.infer(0, deadlineMs);
      await new Promise((resolve) => setTimeout(resolve, 50));
      await transport.close();
      expect((await pending).status).toBe(Status.CANCELLED);
      expect((await transport.infer(0, deadlineMs)).status).toBe(Status.CANCELLED);
    });
  });

  describe("TLS", () => {
    const identity = selfSigned("triton.example");
    const tls = { caPem: identity.certPem, serverName: "triton.example" };
    const fine = message({ do: "digest" }, 100_000);

    it.each([false, true])("requests go through; a connection each: %s", async (newConnectionPerRequest) => {
      const server = kept(await GrpcServer.listen({}, 0, identity));
      const transport = create({ address: server.address, payloads: [fine], tls, newConnectionPerRequest });
      await transport.connect();
      const outcomes = await Promise.all(Array.from({ length: 5 }, () => transport.infer(0, deadlineMs)));
      for (const { status, reply } of outcomes) {
        expect(status).toBe(Status.OK);
        expect(JSON.parse(reply!.toString())).toEqual(digestOf(fine));
      }
      expect(server.headers[0]![":scheme"]).toBe("https");
    });

    // grpc-js tries again until its deadline: one case shows that it does not accept everything.
    const wrongs: [string, TlsOptions][] = [
      ["another name", { caPem: identity.certPem, serverName: "other.example" }],
      ["another authority", { caPem: selfSigned("other.example").certPem, serverName: "triton.example" }],
      ["an address that the certificate does not have", { caPem: identity.certPem, serverName: "" }],
    ];
    it.each(kind === "lean" ? wrongs : wrongs.slice(0, 1))("%s: refused", async (_, wrong) => {
      const server = kept(await GrpcServer.listen({}, 0, identity));
      const transport = create({ address: server.address, payloads: [fine], tls: wrong });
      await expect(transport.connect()).rejects.toThrow(`cannot connect to ${server.address}`);
      expect(server.requests).toBe(0);
    });

    if (kind !== "lean") return;
    it("a server that speaks no HTTP/2 over TLS, or no TLS: refused", async () => {
      const other = createServer({
        cert: identity.certPem,
        key: identity.keyPem,
        ALPNProtocols: ["http/1.1"],
      });
      other.on("tlsClientError", () => undefined);
      await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
      kept({ close: () => new Promise<void>((resolve) => other.close(() => resolve())) });
      const plain = kept(await GrpcServer.listen());
      for (const address of [`127.0.0.1:${(other.address() as AddressInfo).port}`, plain.address])
        await expect(create({ address, payloads: [fine], tls, connections: 1 }).connect()).rejects.toThrow(
          `cannot connect to ${address}`,
        );
    });
  });
});
