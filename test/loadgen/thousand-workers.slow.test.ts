/** One controller and a thousand simulated workers, each with a connection of its own. */
import { expect, it } from "vitest";
import { Controller } from "../../loadgen/controller";
import { FakeWorker } from "./support/fake-worker";
import { loadSpec } from "./support/spec";

it("a thousand workers: all register, every report counts, one that dies is named, the rest go on", async () => {
  const token = "t";
  const count = 1000;
  const controller = await Controller.listen({ token });
  const workers: FakeWorker[] = [];
  try {
    for (let i = 0; i < count; i++) {
      const worker = new FakeWorker(controller.port, token, `w${i}`);
      workers.push(worker);
      worker.register();
    }
    await controller.waitForWorkers(count, 120_000);
    const beat = {
      latenessP99Ms: 0,
      loopDelayP99Ms: 0,
      cpuShare: 0,
      busyWaitShare: 0,
      wireMbPerS: 0,
      rssMb: 0,
      ratePerS: 0,
      inFlight: 1,
      runId: "",
    };
    const heartbeats = setInterval(() => {
      for (const worker of workers) worker.say({ body: "heartbeat", heartbeat: beat });
    }, 1000);
    const spec = loadSpec({ addresses: ["a:1"], imageFolder: "/images", maxInFlight: 5000, sloBoundMs: 100 });
    const result = await controller.run({ ...spec, id: "all" });
    expect(result).toMatchObject({
      valid: true,
      workers: count,
      total: { planned: 100 * count, ok: 100 * count },
    });
    expect(result.response.count).toBe(100 * count);
    workers[500]!.onStart = () => workers[500]!.close();
    const broken = await controller.run({ ...spec, id: "one dies" });
    expect(broken.valid).toBe(false);
    expect(broken.invalidReasons.join()).toMatch(/load worker w500 was lost/);
    workers[500] = workers[0]!;
    const next = await controller.run({ ...spec, id: "the rest" });
    expect(next).toMatchObject({ valid: true, workers: count - 1 });
    clearInterval(heartbeats);
  } finally {
    for (const worker of workers) worker.close();
    await controller.close();
  }
});
