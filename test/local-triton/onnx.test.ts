import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { writeConfigPbtxt } from "../../model-repo/config-pbtxt";
import type { ModelConfig } from "../../model-repo/config-types";
import { LocalTriton } from "../../local-triton/server";
import { ScoresOutput } from "../../local-triton/onnx/output";
import { tinyAnswer, tinyClasses, tinyDims, tinyModel, type TinyModel } from "./onnx-model";
import { rawClient, rawInfer, startServer, type TestServer } from "./support";

const pixelsOf = (seed: number): number[] =>
  Array.from({ length: 48 }, (_, i) => (i * 37 + seed * 101) % 256);
const floats = (...images: readonly number[][]): Buffer =>
  Buffer.from(Float32Array.from(images.flat()).buffer);

function configOf(name: string, model: TinyModel, more: ModelConfig): ModelConfig {
  return {
    name,
    platform: "onnxruntime_onnx",
    max_batch_size: 8,
    input: [
      {
        name: model.inputName ?? "input",
        data_type: `TYPE_${model.inputType ?? "FP32"}`,
        format: "FORMAT_NHWC",
        dims: tinyDims,
      },
    ],
    output: [{ name: "probabilities", data_type: "TYPE_FP32", dims: [tinyClasses] }],
    instance_group: [{ kind: "KIND_CPU", count: 1 }],
    dynamic_batching: {},
    ...more,
  };
}

/** A repository of one ONNX model, whose file may be any bytes. */
function repositoryOf(model: TinyModel | Buffer | null, config: ModelConfig = {}): string {
  const folder = mkdtempSync(join(tmpdir(), "onnx-repository-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "sim", "1"), { recursive: true });
  const tiny = model === null || Buffer.isBuffer(model) ? {} : model;
  writeFileSync(join(folder, "sim", "config.pbtxt"), writeConfigPbtxt(configOf("sim", tiny, config)));
  if (model !== null)
    writeFileSync(join(folder, "sim", "1", "model.onnx"), Buffer.isBuffer(model) ? model : tinyModel(model));
  return folder;
}

function serve(model: TinyModel, config: ModelConfig = {}): Promise<TestServer> {
  return startServer([{}], { modelRepository: repositoryOf(model, config), executor: "onnx" });
}

async function scoresOf(
  { client }: TestServer,
  raw: Buffer,
  images = 1,
  datatype = "FP32",
): Promise<Float32Array> {
  const shape = [images, ...tinyDims];
  const reply = await client.infer({
    modelName: "sim",
    inputName: "input",
    datatype,
    shape,
    raw,
    outputName: "probabilities",
  });
  expect(reply.outputs[0]).toMatchObject({ datatype: "FP32", shape: [images, tinyClasses] });
  return new Float32Array(new Uint8Array(reply.raw[0]!).buffer);
}

function expectClose(actual: Iterable<number>, expected: readonly number[]): void {
  [...actual].forEach((score, index) => expect(score).toBeCloseTo(expected[index]!, 4));
  expect([...actual]).toHaveLength(expected.length);
}

describe("ONNX Runtime behind the serving API", () => {
  it("answers what the model computes, alone, in one request and batched with others", async () => {
    const server = await serve(
      {},
      { dynamic_batching: { preferred_batch_size: [4], max_queue_delay_microseconds: 3_000_000 } },
    );
    const seeds = [1, 2, 3, 4];
    const alone = await Promise.all(seeds.map((seed) => scoresOf(server, floats(pixelsOf(seed)))));
    alone.forEach((scores, index) => expectClose(scores, tinyAnswer(pixelsOf(seeds[index]!))));
    const [model] = await server.client.modelStatistics("sim");
    expect(model!.batch_stats.map(({ batch_size }) => batch_size)).toEqual([4]);
    const two = await scoresOf(server, floats(pixelsOf(5), pixelsOf(6), pixelsOf(7), pixelsOf(8)), 4);
    expectClose(
      two,
      [5, 6, 7, 8].flatMap((seed) => tinyAnswer(pixelsOf(seed))),
    );
    const after = (await server.client.modelStatistics("sim"))[0]!;
    expect(after.execution_count).toBe(2);
    expect(after.inference_count).toBe(8);
    expect(after.inference_stats!.compute_infer!.ns).toBeGreaterThan(0);
  });

  it("answers with classes, best first, and takes bytes", async () => {
    const server = await serve({ inputType: "UINT8" });
    const pixels = pixelsOf(9);
    expectClose(await scoresOf(server, Buffer.from(pixels), 1, "UINT8"), tinyAnswer(pixels));
    const shape = [1, ...tinyDims];
    const answer = await rawInfer(rawClient(server.grpcAddress), {
      model_name: "sim",
      inputs: [{ name: "input", datatype: "UINT8", shape }],
      outputs: [{ name: "probabilities", parameters: { classification: { int64_param: 2 } } }],
      raw_input_contents: [Buffer.from(pixels)],
    });
    const expected = tinyAnswer(pixels);
    const best = expected.indexOf(Math.max(...expected));
    expect(answer.code).toBe("OK");
    expect(answer.reply!.toString("latin1")).toMatch(new RegExp(`0\\.\\d{6}:${best}`));
  });

  it("has several instances, shows neither a GPU nor a dilation, and loads anew", async () => {
    const server = await serve({}, { instance_group: [{ kind: "KIND_CPU", count: 2 }] });
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map((seed) => scoresOf(server, floats(pixelsOf(seed)))),
    );
    answers.forEach((scores, index) => expectClose(scores, tinyAnswer(pixelsOf(index + 1))));
    const metrics = await server.metrics();
    expect(metrics).toMatch(/nv_inference_count\{model="sim",version="1"\} 5/);
    expect(metrics).not.toMatch(/nv_gpu_|local_triton_time_dilation/);
    await server.client.repositoryUnload("sim");
    await server.client.repositoryLoad("sim");
    expectClose(await scoresOf(server, floats(pixelsOf(3))), tinyAnswer(pixelsOf(3)));
  });

  it("answers a failed execution with the reason, counts it, and goes on", async () => {
    const server = await serve({ failsOnBright: true });
    const bright = pixelsOf(1).with(0, 255);
    const dark = pixelsOf(3).with(0, 10);
    await expect(scoresOf(server, floats(bright))).rejects.toThrow(/onnx runtime error: .*Gather/);
    expectClose(await scoresOf(server, floats(dark)), tinyAnswer(dark));
    expect(await server.metrics()).toMatch(
      /nv_inference_request_failure\{model="sim",reason="BACKEND",version="1"\} 1/,
    );
  });

  it.each<[string, TinyModel | Buffer | null, ModelConfig, RegExp]>([
    ["no file", null, {}, /unable to find '.*model\.onnx' for model 'sim'/],
    ["no ONNX", Buffer.from("nonsense"), {}, /onnx runtime error: .*[Pp]rotobuf/],
    [
      "another input",
      { inputName: "data" },
      { input: [{ name: "image", data_type: "TYPE_FP32", dims: tinyDims }] },
      /unexpected inference input 'image', allowed inputs are: data \(float32 \[-1,4,4,3\]\)/,
    ],
    [
      "another shape",
      {},
      { input: [{ name: "input", data_type: "TYPE_FP32", dims: [3, 4, 4] }] },
      /the model has the shape \[-1,4,4,3\], the configuration \[-1,3,4,4\]/,
    ],
    [
      "another type",
      { inputType: "UINT8" },
      { input: [{ name: "input", data_type: "TYPE_FP32", dims: tinyDims }] },
      /the model has uint8, the configuration float32/,
    ],
    [
      "another output",
      {},
      { output: [{ name: "logits", data_type: "TYPE_FP32", dims: [tinyClasses] }] },
      /unexpected inference output 'logits', allowed outputs are: probabilities/,
    ],
    ["a closed batch", { batch: 1 }, {}, /shape \[1,4,4,3\].*export it with an open batch dimension/],
    ["a GPU", {}, { instance_group: [{ kind: "KIND_GPU", count: 1 }] }, /kind KIND_GPU; use KIND_CPU/],
    ["TensorFlow", {}, { platform: "tensorflow_savedmodel" }, /runs ONNX models only/],
    [
      "no number of threads",
      {},
      { parameters: { intra_op_thread_count: { string_value: "many" } } },
      /intra_op_thread_count of 'sim' is 'many'/,
    ],
  ])("refuses a model with %s", async (_what, model, config, message) => {
    const server = await startServer([], { modelRepository: repositoryOf(model, config), executor: "onnx" });
    await expect(server.client.repositoryLoad("sim")).rejects.toThrow(message);
  });

  it("refuses dilated time", async () => {
    const modelRepository = repositoryOf({});
    await expect(LocalTriton.start({ modelRepository, executor: "onnx", timeDilation: 2 })).rejects.toThrow(
      /--time-dilation is for the simulated T4/,
    );
  });
});

describe("the installed ONNX Runtime", () => {
  it("is the CPU's alone: no install script has run, which would have fetched the GPU's libraries", () => {
    const checkout = join(__dirname, "..", "..");
    expect(readFileSync(join(checkout, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
    const files = readdirSync(dirname(require.resolve("onnxruntime-node/package.json")), { recursive: true });
    expect(files.filter((file) => /libonnxruntime\./.test(String(file)))).not.toEqual([]);
    expect(files.filter((file) => /cuda|tensorrt/i.test(String(file)))).toEqual([]);
  });
});

describe("scores", () => {
  it("are ordered with the lower index first where equal, and what is no number last", () => {
    const output = new ScoresOutput(Float32Array.from([0.2, 0.5, NaN, 0.5, 0.9, 0.1, 0.1, 0.1]), 4);
    expect(output.top(0, 4).map(({ classIndex }) => classIndex)).toEqual([1, 3, 0, 2]);
    expect(output.top(1, 2)).toEqual([
      { classIndex: 0, score: Math.fround(0.9) },
      { classIndex: 1, score: Math.fround(0.1) },
    ]);
  });
});
