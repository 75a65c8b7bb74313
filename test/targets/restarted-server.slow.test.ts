/** A foreign server that dies in the middle of a sweep and is started again by somebody, without the model that was being measured. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { KserveClient } from "../../kserve/client";
import { originalArtefact } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { findServers, openAddressTarget } from "../../targets/address";
import { untilReady } from "../../targets/until-ready";
import { LiveRunner } from "../../tuning/live-runner";
import type { SearchStrategy } from "../../tuning/outcome";
import { askReferenceAnswers } from "../../tuning/reference-answers";
import { runSweep, type SweepEvent } from "../../tuning/sweep";
import { TargetGone } from "../../tuning/target";
import { freePorts } from "../free-ports";
import { PHOTO } from "../local-triton/infer-cases";
import { makeRepository } from "../local-triton/support";
import { makeOutcome, makeTrialSpec } from "../tuning/make";

const MAIN = join(__dirname, "../../local-triton/main.ts");
/** Long enough for gRPC's own pauses between attempts to grow, were they not bounded. */
const AWAY_S = 9;

function start(
  repository: string,
  ports: readonly number[],
): { child: ChildProcess; ready: Promise<unknown> } {
  const [grpc, http, metrics] = ports;
  const child = spawn(
    process.execPath,
    [
      ...["--import", "tsx", MAIN, "--model-repository", repository, "--model-control-mode", "explicit"],
      ...["--grpc-port", String(grpc), "--http-port", String(http), "--metrics-port", String(metrics)],
    ],
    { stdio: ["ignore", "pipe", "ignore"] },
  );
  onTestFinished(() => void child.kill("SIGKILL"));
  return { child, ready: new Promise((resolve) => child.stdout.once("data", resolve)) };
}

const photo = { ...PHOTO, gpuMsPerBatch: 5, config: { max_batch_size: 8, dynamic_batching: {} } };
const variant = (maxBatchSize: number): Variant => ({
  name: `max${maxBatchSize}`,
  artefact: { ...originalArtefact, name: "sim" },
  maxBatchSize,
  instanceCount: 1,
  queueDelayUs: 0,
  preferredBatchSizes: [],
  published: null,
});

it("is waited for, gets its model again, and the trial is repeated", async () => {
  const ports = await freePorts(3);
  const repository = makeRepository([{ ...photo, name: "sim" }]);
  const first = start(repository, ports);
  await first.ready;
  const target = await openAddressTarget({
    servers: await findServers([`127.0.0.1:${ports[0]}`], [`http://127.0.0.1:${ports[2]}/metrics`]),
    maxRatePerS: 100,
    workers: 1,
    cores: 2,
  });
  onTestFinished(() => target.close());
  const runner = new LiveRunner({
    target,
    imageFolder: imagesFolder,
    transport: "lean",
    referenceAnswers: (served, modelName, address) =>
      askReferenceAnswers(served, modelName, address, imagesFolder),
  });
  function* twoTrials(of: Variant): SearchStrategy {
    for (const seed of [1, 2]) {
      const shape = { kind: "poisson", ratePerS: 20 } as const;
      // Far above what this server takes, so that a busy machine fails nothing.
      const slo = { quantile: 0.95, boundMs: 5000 };
      yield makeTrialSpec({ variant: of, shape, slo, seed, warmupS: 0.2, measureS: 2 });
    }
    return makeOutcome(of.name);
  }
  const events: SweepEvent[] = [];
  const done: string[] = [];
  let backAt = Infinity;
  let wentOnAfterS: number | null = null;
  const result = await runSweep({
    variants: [variant(8), variant(4)],
    strategyFor: twoTrials,
    runner,
    store: { find: () => null, append: async () => undefined },
    recover: async (of, failure, watch) => {
      runner.reset();
      await target.recover(of, failure, watch);
    },
    onEvent: (event) => {
      events.push(event);
      if (event.kind === "trial-finished") {
        done.push(`${event.spec.variant.name} ${event.spec.seed}`);
        if (backAt < Infinity) wentOnAfterS ??= (performance.now() - backAt) / 1000;
      }
      if (event.kind !== "trial-progress" || done.length !== 1 || first.child.killed) return;
      first.child.kill("SIGKILL");
      setTimeout(() => {
        void start(repository, ports).ready.then(() => (backAt = performance.now()));
      }, 1000 * AWAY_S);
    },
  });
  expect(first.child.killed).toBe(true);
  expect(result).toMatchObject({
    endedEarly: null,
    outcomes: [{ variantName: "max8" }, { variantName: "max4" }],
  });
  expect(done).toEqual(["max8 1", "max8 2", "max4 1", "max4 2"]);
  const waits = events.flatMap((event) => (event.kind === "waiting" ? [event.text] : []));
  expect(waits[0]).toMatch(/^waiting for 127\.0\.0\.1:\d+ since [4-9] s: nothing listens there$/);
  // With a trial of 2 s, and the model loaded again; minutes are what it must not be.
  expect(wentOnAfterS).toBeLessThan(30);
});

it("that stays away is told so, with the seconds that it was waited for", async () => {
  const [port] = await freePorts(1);
  const client = new KserveClient(`127.0.0.1:${port}`);
  onTestFinished(() => client.close());
  const error = await untilReady(client, {}, 1).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(TargetGone);
  expect((error as Error).message).toMatch(
    /^nothing listens at 127\.0\.0\.1:\d+ any more; given up after \d s\./,
  );
  const signal = AbortSignal.timeout(300);
  await expect(untilReady(client, { signal }, 60)).rejects.toThrow(/aborted due to timeout/);
});
