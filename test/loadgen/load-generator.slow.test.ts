/** The load generator's processes over seconds: exact counts, frozen and orphaned workers, memory. */
import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { Flag, frame, FrameType, SettingId, settingsPayload, uint32 } from "../../http2/frames";
import type { LoadProfile } from "../../loadgen/load-profile";
import { startLocalCluster, type LocalCluster } from "../../loadgen/local-cluster";
import { LeanTransport } from "../../loadgen/transport-lean/lean-transport";
import { InferServer } from "./support/infer-server";
import { imageFolder, loadSpec } from "./support/spec";

let images: string;
let server: InferServer;
const clusters: LocalCluster[] = [];

beforeAll(async () => {
  images = await imageFolder(1);
  server = await InferServer.listen();
});
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});
afterAll(async () => {
  await server.close();
  await rm(images, { recursive: true, force: true });
});

async function cluster(workers: number): Promise<LocalCluster> {
  const started = await startLocalCluster({ workers });
  clusters.push(started);
  return started;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it("333/s for 10 s are 3,330 requests, planned, sent and answered (node#26578)", async () => {
  const load = await cluster(2);
  const shape = { kind: "constant", ratePerS: 333 } as const;
  const spec = loadSpec({
    addresses: [server.address],
    imageFolder: images,
    shape,
    warmupS: 0,
    measureS: 10,
  });
  const before = server.requests;
  const { total, intervals, response } = await load.run(spec);
  expect(total.planned).toBe(3330);
  expect(total.failed).toBe(0);
  expect(response.count).toBe(3330 - total.shed);
  expect(intervals.map(({ planned }) => planned)).toEqual(new Array(10).fill(333));
  expect(server.requests - before).toBeGreaterThanOrEqual(3330);
});

it("the stop rule ends every kind of load, in the worker too", async () => {
  const one = await cluster(1);
  const users = { kind: "users", spawnPerS: 1000 } as const;
  const shapes: Record<string, LoadProfile> = {
    constant: { kind: "constant", ratePerS: 50 },
    poisson: { kind: "poisson", ratePerS: 50 },
    ramp: { kind: "ramp", fromPerS: 40, toPerS: 4000, overS: 600, arrivals: "poisson" },
    steps: { kind: "steps", steps: [{ ratePerS: 50, forS: 600 }], arrivals: "constant" },
    users: { ...users, users: 30, thinkMinS: 0.1, thinkMaxS: 0.2 },
    concurrency: { ...users, users: 10, thinkMinS: 0, thinkMaxS: 0 },
    recorded: { kind: "recorded", atS: Array.from({ length: 30_000 }, (_, i) => i / 50) },
  };
  server.behaviour.delayMs = 200;
  for (const [name, shape] of Object.entries(shapes))
    for (const newConnectionPerRequest of name === "poisson" ? [false, true] : [false]) {
      const result = await one.run(
        loadSpec({
          ...{ addresses: [server.address], imageFolder: images, shape, newConnectionPerRequest },
          ...{ warmupS: 0, measureS: 600, sloBoundMs: 100, deadlineMs: 5000, checkEvery: 0 },
          stopWhen: { quantile: 0.95, boundMs: 100, windowS: 1, minSamples: 20 },
        }),
      );
      expect(result.stop?.finding, name).toMatchObject({ lastGood: null });
      expect(result.stop!.finding!.firstBad.quantileMs, name).toBeGreaterThan(100);
      // What was sent is what was planned until the stop, not for ten minutes.
      expect(result.total.planned, name).toBeGreaterThanOrEqual(20);
      expect(result.total.planned, name).toBeLessThan(3000);
      expect(result.stop!.atS, name).toBeLessThan(60);
    }
  server.behaviour.delayMs = 0;
}, 120_000);

it("a worker that is frozen is lost by its silence", async () => {
  const load = await cluster(2);
  const spec = loadSpec({ addresses: [server.address], imageFolder: images, measureS: 60 });
  const running = load.run(spec);
  await pause(1500);
  const [frozen] = load.pids;
  process.kill(frozen!, "SIGSTOP");
  const result = await running;
  expect(result.valid).toBe(false);
  expect(result.invalidReasons[0]).toMatch(/load worker local-\d was lost: it said nothing for 5 s/);
  process.kill(frozen!, "SIGKILL");
});

it("workers end when their parent is killed", async () => {
  const script = `
    const { startLocalCluster } = require(${JSON.stringify(join(__dirname, "../../loadgen/local-cluster.ts"))});
    startLocalCluster({ workers: 2 }).then((cluster) => console.log(JSON.stringify(cluster.pids)));
    setInterval(() => undefined, 1000);`;
  const parent = spawn(process.execPath, ["--import", "tsx", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd: join(__dirname, "../.."),
  });
  const pids = await new Promise<number[]>((resolve) =>
    parent.stdout.once("data", (chunk: Buffer) => resolve(JSON.parse(chunk.toString()) as number[])),
  );
  expect(pids).toHaveLength(2);
  parent.kill("SIGKILL");
  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  for (let attempt = 0; attempt < 100 && pids.some(isAlive); attempt++) await pause(50);
  expect(pids.filter(isAlive)).toEqual([]);
});

/** A server that opens every window and then reads nothing more. */
async function stalledServer(): Promise<{ address: string; close: () => void }> {
  const sockets: Socket[] = [];
  const stalled = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.write(
      frame(FrameType.SETTINGS, 0, 0, settingsPayload([[SettingId.INITIAL_WINDOW_SIZE, 0x7fffffff]])),
    );
    socket.write(frame(FrameType.WINDOW_UPDATE, 0, 0, uint32(0x7fff0000)));
    socket.write(frame(FrameType.PING, Flag.ACK, 0, Buffer.alloc(8)));
    socket.pause();
  });
  await new Promise<void>((resolve) => stalled.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    stalled.close();
  };
  return { address: `127.0.0.1:${(stalled.address() as AddressInfo).port}`, close };
}

it("2,000 requests of 602 kB to a server that reads nothing need little memory", async () => {
  const stalled = await stalledServer();
  const transport = new LeanTransport({
    address: stalled.address,
    payloads: [Buffer.alloc(602_212)],
    connections: 4,
  });
  await transport.connect();
  const before = process.memoryUsage.rss();
  const outcomes = Array.from({ length: 2000 }, () => transport.infer(0, 2000));
  await pause(1000);
  expect(process.memoryUsage.rss() - before).toBeLessThan(60e6);
  const statuses = new Set((await Promise.all(outcomes)).map(({ status }) => status));
  expect([...statuses]).toEqual([4]);
  await transport.close();
  stalled.close();
});

it("memory stays flat over 60,000 small requests and 3,000 large ones", async () => {
  const payloads = [Buffer.alloc(300), Buffer.alloc(602_212)];
  const transport = new LeanTransport({ address: server.address, payloads, connections: 2 });
  await transport.connect();
  const send = async (payload: number, count: number): Promise<void> => {
    let left = count;
    const client = async (): Promise<void> => {
      while (left-- > 0) await transport.infer(payload, 10_000);
    };
    await Promise.all(Array.from({ length: 32 }, client));
  };
  await send(0, 20_000);
  await send(1, 1000);
  const before = process.memoryUsage.rss();
  await send(0, 40_000);
  await send(1, 2000);
  expect(process.memoryUsage.rss() - before).toBeLessThan(60e6);
  await transport.close();
});
