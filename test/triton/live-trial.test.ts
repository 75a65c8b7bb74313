import { describe, expect, it, onTestFinished } from "vitest";
import { originalArtefact } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { findServers, openAddressTarget } from "../../targets/address";
import { LiveRunner } from "../../tuning/live-runner";
import { askReferenceAnswers } from "../../tuning/reference-answers";
import { checkScaling } from "../../tuning/scaling";
import type { OpenTarget } from "../../tuning/target";
import type { TrialSpec } from "../../tuning/trial";
import { PHOTO } from "../local-triton/infer-cases";
import { makeRepository, testConfig } from "../local-triton/support";
import { startTriton } from "./harness/subjects";
import { underWay } from "./harness/under-way";

const MODEL = {
  ...PHOTO,
  gpuMsPerBatch: 20,
  config: { max_batch_size: 8, dynamic_batching: { max_queue_delay_microseconds: 5000 } },
};

const variant: Variant = {
  name: "sim",
  artefact: { ...originalArtefact, name: "sim" },
  maxBatchSize: 8,
  instanceCount: 1,
  queueDelayUs: 5000,
  preferredBatchSizes: [],
  published: null,
};

function trial(change: Partial<TrialSpec> = {}): TrialSpec {
  return {
    variant,
    shape: { kind: "poisson", ratePerS: 40 },
    // Far above what this server takes, so that a busy machine invalidates nothing.
    slo: { quantile: 0.95, boundMs: 5000 },
    seed: 1,
    warmupS: 0.5,
    measureS: 4,
    purpose: "confirm",
    ...change,
  };
}

async function open(servers: readonly Awaited<ReturnType<typeof startTriton>>[]) {
  const addresses = servers.map(({ grpcAddress }) => grpcAddress);
  const metrics = servers.map(({ server }) => server.metricsUrl);
  const target = await openAddressTarget({
    servers: await findServers(addresses, metrics),
    maxRatePerS: 1000,
    workers: 1,
    cores: 2,
  });
  onTestFinished(() => target.close());
  return { target, runner: runnerOn(target) };
}

function runnerOn(target: OpenTarget): LiveRunner {
  return new LiveRunner({
    target,
    imageFolder: imagesFolder,
    transport: "lean",
    referenceAnswers: (served, modelName, address) =>
      askReferenceAnswers(served, modelName, address, imagesFolder),
  });
}

function startServer(ports?: readonly number[]) {
  return startTriton({ repository: makeRepository([MODEL]), loadModels: ["sim"], ports });
}

describe("a trial on a real Triton", () => {
  it("has the client's and the server's figures of the same window, and every checked answer is right", async () => {
    const { target, runner } = await open([await startServer()]);
    const progress: number[] = [];
    const { load, server } = await runner.run(trial(), ({ elapsedS }) => progress.push(elapsedS));
    expect(load.invalidReasons).toEqual([]);
    expect(load.total.ok).toBe(load.total.planned);
    expect(load.total.planned).toBeGreaterThan(100);
    expect(load.errors).toEqual({});
    expect(server.computeInferMs).toBeCloseTo(20, 1);
    expect(server.meanBatch).toBeGreaterThan(1);
    expect(server.meanBatch).toBeLessThan(4);
    expect(server.queueMs).toBeGreaterThan(1);
    expect(load.service.meanMs).toBeGreaterThan(server.queueMs! + 20);
    expect(server.gpuBusy).toBeNull();
    const executed = Object.entries(server.batchSizes!).reduce((sum, [size, n]) => sum + Number(size) * n, 0);
    expect(executed).toBeGreaterThanOrEqual(load.total.ok);
    expect(progress.length).toBeGreaterThan(2);
    expect(target.timeDilation(variant)).toBe(1);
  });

  it("is not used when the model was loaded anew meanwhile", async () => {
    const started = await startServer();
    const { runner } = await open([started]);
    const { running } = await underWay(runner, trial());
    await started.client.repositoryLoad("sim", JSON.stringify({ ...testConfig(MODEL), max_batch_size: 7 }));
    await expect(running).rejects.toThrow(/a server was restarted or sim was loaded anew during the trial/);
  });

  it("is not used when the server went away; when it is back, the sweep can go on", async () => {
    const started = await startServer();
    const { target, runner } = await open([started]);
    const { running } = await underWay(runner, trial());
    await started.server.stop();
    await expect(running).rejects.toThrow();
    runner.reset();
    const recovered = target.recover(variant, { measured: false, reason: "it went away" });
    await startServer(started.server.ports);
    await recovered;
    const { load } = await runner.run(trial({ measureS: 2 }));
    expect(load.total.ok).toBe(load.total.planned);
  });
});

describe("two servers", () => {
  it("share the load evenly, and together hold twice the rate", async () => {
    const { target, runner } = await open([await startServer(), await startServer()]);
    const single = await runner.run(trial({ measureS: 2 }));
    expect(Object.keys(single.load.perAddress)).toHaveLength(1);
    const signal = new AbortController().signal;
    const { slo, seed } = trial();
    const check = { replicas: target.replicas!(), runner, variant, slo, seed, signal };
    const sentence = await checkScaling(check, 40);
    expect(sentence).toMatch(
      /^2 servers at 2 x 40\.0 requests\/s hold the SLO(, as far as 15 s show)? \(0\.0 % missed the bound; shares/,
    );
    const [one, other] = [...sentence.matchAll(/(\d+) %(?=[,)])/g)].map(([, share]) => Number(share));
    expect(Math.abs(one! - 50)).toBeLessThanOrEqual(2);
    expect(one! + other!).toBe(100);
    expect(await checkScaling(check, 600)).toMatch(
      /not known \(a trial would offer 1200 requests\/s, the limit is 1000/,
    );
  });
});
