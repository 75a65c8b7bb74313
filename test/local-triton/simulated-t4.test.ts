import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FinishedBatch, ModelLoadError, type RunnerRequest } from "../../local-triton/executor";
import { ModelClock } from "../../local-triton/model-clock";
import { classify, SimulatedOutput } from "../../local-triton/simulated-t4/answer";
import { SimulatedT4 } from "../../local-triton/simulated-t4/executor";
import { simulatedModel } from "../../local-triton/simulated-t4/model-law";
import { catalogue } from "../../model-repo/catalogue";
import { withTritonDefaults } from "../../model-repo/config-defaults";
import { toModelConfig } from "../../model-repo/model-config";
import type { ModelConfig } from "../../model-repo/config-types";
import { NodeModel } from "../../serving-model/node-model";
import { serviceLawFor } from "../../serving-model/t4";
import { sleep, tensor, testConfig, type TestModel } from "./support";

class Recorder {
  readonly batches: FinishedBatch<RunnerRequest>[] = [];
  readonly rejections: string[] = [];
  readonly lateness: number[] = [];

  constructor(private readonly now: () => number) {}

  finished(batch: FinishedBatch<RunnerRequest>): void {
    this.batches.push(batch);
    this.lateness.push(this.now() - batch.endUs);
  }

  failed(): void {
    expect.fail("nothing fails");
  }

  rejected(_request: RunnerRequest, reason: string): void {
    this.rejections.push(reason);
  }
}

async function makeNode(models: readonly TestModel[], dilation = 1) {
  const clock = new ModelClock(dilation);
  const observed: number[] = [];
  const node = new SimulatedT4(clock, { lateness: (us) => observed.push(us) }, 0);
  const recorder = new Recorder(() => clock.nowUs());
  const runners = [];
  for (const model of models) {
    const config = withTritonDefaults(testConfig(model));
    runners.push(await node.load({ config, previous: null, versionFolder: "" }, recorder));
  }
  return { node, recorder, runners, observed, clock };
}

/** A small seeded generator of numbers in [0, 1). */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const one: () => RunnerRequest = () => ({ images: 1, timeoutUs: 0 });

describe("simulated T4", () => {
  it("keeps the plan of executions when its timers are late, and reports how late they were", async () => {
    const { recorder, runners, observed } = await makeNode([
      { hostMsPerImage: 5, gpuMsPerBatch: 20, config: { max_batch_size: 1 } },
    ]);
    for (let i = 0; i < 4; i++) runners[0]!.submit(one(), tensor(48, i));
    // The event loop stands still over the planned ends of all executions.
    const until = performance.now() + 180;
    while (performance.now() < until);
    await sleep(20);
    expect(recorder.batches).toHaveLength(4);
    const [first] = recorder.batches;
    recorder.batches.forEach((batch, i) => {
      // No dynamic batching: one at a time, 25 ms each, one after the other without a gap.
      expect(batch.startUs - first!.startUs).toBeCloseTo(i * 25_000, 3);
      expect(batch.endUs - batch.startUs).toBeCloseTo(25_000, 3);
      expect(batch.inputEndUs - batch.startUs).toBeCloseTo(5000, 3);
      expect(observed[i]).toBeGreaterThan((180 - (i + 1) * 25) * 1000 - 1000);
    });
  });

  it("forms the batches that virtual time forms from the same arrivals, at the same times", async () => {
    const config: ModelConfig = {
      max_batch_size: 4,
      instance_group: [{ count: 2 }],
      dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 5000 },
    };
    const law = { hostMsPerImage: 1, gpuMsPerBatch: 3, gpuMsPerImage: 0.5, ingressRequestsPerS: Infinity };
    const { recorder, runners } = await makeNode([{ ...law, config }]);
    const random = mulberry(7);
    for (let i = 0; i < 150; i++) {
      runners[0]!.submit(one(), tensor(48, i));
      if (random() < 0.7) await sleep(random() * 4);
    }
    await runners[0]!.close();
    const arrivals = recorder.batches.flatMap((batch) => batch.queuedUs).sort((a, b) => a - b);
    expect(arrivals).toHaveLength(150);
    const planned: { images: number; startUs: number; endUs: number }[] = [];
    const virtual = new NodeModel<number>(
      {
        maxBatchSize: 4,
        preferredBatchSizes: [4],
        queueDelayUs: 5000,
        dynamicBatching: true,
        instanceCount: 2,
        law,
        payloadBytes: 192,
      },
      {
        onExecuted: ({ images, startUs, endUs }) => planned.push({ images, startUs, endUs }),
        onRejected: () => expect.fail("nothing is rejected"),
      },
    );
    for (const [index, atUs] of arrivals.entries()) {
      virtual.advance(atUs);
      virtual.arrive(index, 1, 192, atUs);
    }
    virtual.advance(arrivals.at(-1)! + 1e6);
    expect(recorder.batches.map(({ images, startUs, endUs }) => ({ images, startUs, endUs }))).toEqual(
      planned,
    );
    expect(new Set(planned.map((batch) => batch.images)).size).toBeGreaterThan(1);
  });

  it("shares one GPU between all models, first come first served", async () => {
    const { recorder, runners } = await makeNode([
      { name: "a", gpuMsPerBatch: 30 },
      { name: "b", gpuMsPerBatch: 30, hostMsPerImage: 1 },
    ]);
    runners[0]!.submit(one(), tensor(48));
    runners[1]!.submit(one(), tensor(48));
    await sleep(100);
    const [a, b] = recorder.batches;
    expect(b!.inferEndUs).toBeCloseTo(a!.inferEndUs + 30_000, 3);
    expect(b!.inferEndUs - b!.inputEndUs).toBeGreaterThan(50_000);
  });

  it("lets requests in through the link one after the other", async () => {
    const { recorder, runners } = await makeNode([
      { ingressRequestsPerS: 100, config: { max_batch_size: 1 } },
    ]);
    for (let i = 0; i < 3; i++) runners[0]!.submit(one(), tensor(48, i));
    await sleep(60);
    const queued = recorder.batches.map((batch) => batch.queuedUs[0]!);
    expect(queued[1]! - queued[0]!).toBeCloseTo(10_000, 3);
    expect(queued[2]! - queued[1]!).toBeCloseTo(10_000, 3);
  });

  it("stretches wall time by the dilation and nothing else", async () => {
    const { recorder, runners } = await makeNode([{ gpuMsPerBatch: 20 }], 4);
    const from = performance.now();
    runners[0]!.submit(one(), tensor(48));
    while (recorder.batches.length === 0) await sleep(1);
    expect(performance.now() - from).toBeGreaterThanOrEqual(79);
    const [batch] = recorder.batches;
    expect(batch!.endUs - batch!.startUs).toBeCloseTo(20_000, 3);
  });

  it("takes out a waiting request that is cancelled, not an executing one", async () => {
    const { recorder, runners } = await makeNode([{ gpuMsPerBatch: 30, config: { max_batch_size: 1 } }]);
    const runner = runners[0]!;
    const [executing, waiting] = [one(), one()];
    runner.submit(executing, tensor(48));
    runner.submit(waiting, tensor(48));
    expect(runner.waiting).toBe(1);
    expect(runner.cancel(executing)).toBe(false);
    expect(runner.cancel(waiting)).toBe(true);
    expect(runner.cancel(waiting)).toBe(false);
    expect(runner.waiting).toBe(0);
    await runner.close();
    expect(recorder.batches.map((batch) => batch.requests)).toEqual([[executing]]);
  });

  it("takes each catalogue variant's law from its configuration", () => {
    for (const variant of catalogue) {
      const model = simulatedModel(toModelConfig(variant));
      expect(model.law).toEqual(serviceLawFor(variant));
      expect(model).toMatchObject({
        precision: variant.artefact.precision,
        instanceCount: variant.instanceCount,
        classes: 1000,
      });
    }
  });

  it("refuses what it has no figures for", () => {
    const config = withTritonDefaults({
      ...testConfig(),
      name: "resnet_fp16",
      platform: "onnxruntime_onnx",
      parameters: {},
    });
    expect(() => simulatedModel(config)).toThrow(ModelLoadError);
    expect(() => simulatedModel(config)).toThrow(/^Invalid argument: .*onnxruntime_onnx/);
    const two = withTritonDefaults({ ...testConfig(), output: [...testConfig().output!, { name: "b" }] });
    expect(() => simulatedModel(two)).toThrow(/one input and one output/);
  });
});

describe("simulated answers", () => {
  const pixels = fc.uint8Array({ minLength: 300, maxLength: 300 });
  const asFloats = (bytes: Uint8Array): Buffer => Buffer.from(Float32Array.from(bytes).buffer);

  it("depend on the image alone: same class in FP32 and UINT8 and in every precision, score close", () => {
    fc.assert(
      fc.property(pixels, (bytes) => {
        const whole = classify(asFloats(bytes), "FP32", 1000, "original");
        expect(classify(Buffer.from(bytes), "UINT8", 1000, "original")).toEqual(whole);
        for (const [precision, tolerance] of [
          ["fp32", 1e-5],
          ["fp16", 5e-4],
          ["int8", 5e-3],
        ] as const) {
          const other = classify(asFloats(bytes), "FP32", 1000, precision);
          expect(other.classIndex).toBe(whole.classIndex);
          expect(Math.abs(other.score - whole.score)).toBeLessThanOrEqual(tolerance + 1e-12);
        }
        expect(whole.score).toBeGreaterThan(0.5);
        expect(whole.score).toBeLessThan(1);
      }),
    );
  });

  it("differ between images and use all classes", () => {
    const classes = new Set<number>();
    const answers = new Set<string>();
    for (let seed = 0; seed < 2000; seed++) {
      const { classIndex, score } = classify(tensor(768, seed), "FP32", 20, "fp32");
      classes.add(classIndex);
      answers.add(`${classIndex}:${score.toFixed(4)}`);
    }
    expect(classes.size).toBe(20);
    // tensor() has 256 different seeds.
    expect(answers.size).toBeGreaterThan(250);
  });

  it("rank like a distribution: descending, distinct classes, the tensor agrees", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.double({ min: 0.5, max: 0.99, noNaN: true }),
        (classes, score) => {
          const best = { classIndex: classes - 1, score };
          const output = new SimulatedOutput([best], classes);
          const top = output.top(0, classes + 5);
          expect(top).toHaveLength(classes);
          expect(new Set(top.map((entry) => entry.classIndex)).size).toBe(classes);
          for (let i = 1; i < top.length; i++) expect(top[i]!.score).toBeLessThanOrEqual(top[i - 1]!.score);
          const raw = output.raw();
          expect(raw.length).toBe(classes * 4);
          for (const entry of top) expect(raw.readFloatLE(entry.classIndex * 4)).toBeCloseTo(entry.score, 5);
        },
      ),
    );
  });
});
