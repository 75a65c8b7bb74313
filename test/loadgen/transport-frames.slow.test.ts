/** The lean transport against a hostile server, at length. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { frame, FrameType } from "../../http2/frames";
import { GrpcStatusCode as Status } from "../../kserve/status";
import { LeanTransport } from "../../loadgen/transport-lean/lean-transport";
import { RawServer } from "./support/raw-server";

it("a server that floods PINGs and reads nothing is cut off instead of filling the memory", async () => {
  const server = await RawServer.listen((connection) => connection.greet());
  const transport = new LeanTransport({
    address: server.address,
    payloads: [Buffer.alloc(1)],
    connections: 1,
  });
  await transport.connect();
  const { socket } = server.connections[0]!;
  socket.pause();
  const pings = Buffer.concat(
    Array.from({ length: 10_000 }, () => frame(FrameType.PING, 0, 0, Buffer.alloc(8))),
  );
  const gone = new Promise<void>((resolve) =>
    socket.on("error", () => resolve()).on("close", () => resolve()),
  );
  const flood = (): void => {
    while (socket.writable && socket.write(pings));
  };
  socket.on("drain", flood);
  flood();
  await gone;
  expect(process.memoryUsage().rss).toBeLessThan(1e9);
  await transport.close();
  await server.close();
});

it("10,000 random frames: no crash, no hang, each request ends with a status, and a good server is served again", async () => {
  const seeds = fc.sample(
    fc.array(
      fc.tuple(
        fc.integer({ min: 0, max: 10 }),
        fc.integer({ min: 0, max: 255 }),
        fc.constantFrom("own", "own", "own", "zero", "next", "even"),
        fc.uint8Array({ maxLength: 60 }),
      ),
      { minLength: 1, maxLength: 10 },
    ),
    { numRuns: 2000, seed: 42 },
  );
  let hostile = true;
  let served = 0;
  let frames = 0;
  const server = await RawServer.listen((connection) => {
    connection.onRequest = (id) => {
      if (!hostile) return connection.reply(id);
      const streams = { own: id, zero: 0, next: id + 2, even: id + 1 };
      const list = seeds[served++ % seeds.length]!;
      frames += list.length;
      for (const [type, flags, stream, payload] of list)
        connection.send(type, flags, streams[stream], payload);
    };
    connection.greet();
  });
  const transport = new LeanTransport({
    address: server.address,
    payloads: [Buffer.alloc(100)],
    connections: 8,
  });
  await transport.connect();
  const statuses = new Map<number, number>();
  const client = async (): Promise<void> => {
    while (frames < 10_000) {
      const { status } = await transport.infer(0, 100);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status !== Status.OK) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));
  expect(transport.inFlight).toBe(0);
  expect([...statuses.keys()].every((status) => Number.isInteger(status) && status >= 0)).toBe(true);
  expect(statuses.get(Status.UNAVAILABLE)).toBeGreaterThan(100);
  hostile = false;
  let outcome = await transport.infer(0, 3000);
  for (let i = 0; i < 100 && outcome.status !== Status.OK; i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    outcome = await transport.infer(0, 3000);
  }
  expect(outcome.status).toBe(Status.OK);
  await transport.close();
  await server.close();
});
