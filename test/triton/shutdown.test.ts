import { describe, expect, it } from "vitest";
import { inferTensor, sleep } from "../local-triton/support";
import { subjects } from "./harness/subjects";

describe.each(subjects)("SIGTERM to %s", (_name, start) => {
  it("closes HTTP first, answers what is inside, refuses what comes, then forgets the models, then closes gRPC", async () => {
    const { client, grpcAddress, http, terminate } = await start([
      { gpuMsPerBatch: 200, config: { max_batch_size: 4, dynamic_batching: {} } },
    ]);
    // A queue of several batches: with less than that Triton forgets the models at once.
    const inside = Array.from({ length: 24 }, (_unused, seed) => inferTensor(grpcAddress, seed));
    await sleep(200);
    const from = performance.now();
    const ended = terminate().then(() => performance.now() - from);
    await sleep(100);
    await expect(http("/v2/health/ready")).rejects.toThrow();
    await expect(client.serverReady()).rejects.toThrow("UNAVAILABLE: Server exiting");
    await expect(client.serverLive()).rejects.toThrow("UNAVAILABLE: Server exiting");
    await expect(client.health()).rejects.toThrow("UNAVAILABLE: Server exiting");
    await expect(client.modelReady("sim")).rejects.toThrow("UNAVAILABLE: Server not ready");
    await expect(client.modelStatistics("sim")).rejects.toThrow("UNAVAILABLE: Server not ready");
    await expect(client.repositoryIndex()).rejects.toThrow("UNAVAILABLE: Server not ready");
    await expect(client.repositoryLoad("sim")).rejects.toThrow("UNAVAILABLE: Server not ready");
    expect((await client.serverMetadata()).extensions).toContain("classification");
    expect(await inferTensor(grpcAddress)).toMatchObject({
      code: "UNAVAILABLE",
      message:
        "[request id: <id_unknown>] Server is stopping, scheduler for model has stopped accepting new inference requests",
    });
    let last = await inferTensor(grpcAddress);
    while (last.code !== "NOT_FOUND" && performance.now() - from < 5000) {
      await sleep(20);
      last = await inferTensor(grpcAddress);
    }
    expect(last.message).toBe("Request for unknown model: 'sim' has no available versions");
    expect(performance.now() - from).toBeGreaterThan(900);
    expect(new Set((await Promise.all(inside)).map(({ code }) => code))).toEqual(new Set(["OK"]));
    expect(await ended).toBeGreaterThan(1900);
    expect(await ended).toBeLessThan(8000);
  });
});
