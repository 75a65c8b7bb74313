/** Tiny ONNX classifiers for tests, written as the bytes of their protobuf messages (onnx.proto, IR version 8, opset 13). */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { WireWriter } from "../../kserve/wire-writer";

/** Numbers of onnx.proto's TensorProto.DataType. */
const dataTypes = { FP32: 1, UINT8: 2, INT64: 7 } as const;

export interface TinyModel {
  readonly inputName?: string;
  readonly inputType?: "FP32" | "UINT8";
  /** Without the batch. Default [4, 4, 3]. */
  readonly dims?: readonly number[];
  readonly outputName?: string;
  readonly classes?: number;
  /** Batch dimension: open by default. */
  readonly batch?: number;
  /** Weight of an input value for a class. */
  readonly weight?: (value: number, classIndex: number) => number;
  /** The model fails on images whose first value is 200 or more. */
  readonly failsOnBright?: boolean;
  /** Extra matrix products of 512 x 512, to take time. Default 0. */
  readonly work?: number;
}

export const tinyDims = [4, 4, 3] as const;
export const tinyClasses = 10;

/** Weights that tell photographs apart: of mixed signs, no two classes alike. */
export function tinyWeight(value: number, classIndex: number): number {
  return Math.sin(1 + value * 12.9898 + classIndex * 78.233) / 60;
}

/** The same for colours in the wrong order: a conversion that reads BGR. */
export function swappedWeight(value: number, classIndex: number): number {
  return tinyWeight(value - (value % 3) + (2 - (value % 3)), classIndex);
}

/** input [N, h, w, 3] -> (cast to FP32) -> flatten -> weights -> softmax -> output [N, classes]. */
export function tinyModel(model: TinyModel = {}): Buffer {
  const {
    inputName = "input",
    inputType = "FP32",
    outputName = "probabilities",
    classes = tinyClasses,
  } = model;
  const { dims = tinyDims, weight = tinyWeight, work = 0 } = model;
  const values = dims.reduce((product, dim) => product * dim, 1);
  const batch = model.batch ?? "N";
  const weights = Float32Array.from({ length: values * classes }, (_, index) =>
    weight(Math.floor(index / classes), index % classes),
  );
  return new WireWriter()
    .integer(1, 8)
    .message(7, (graph) => {
      node(graph, "Cast", [inputName], "pixels", (list) =>
        list.message(5, (attribute) => attribute.text(1, "to").integer(3, dataTypes.FP32).integer(20, 2)),
      );
      node(graph, "Flatten", ["pixels"], "flat");
      node(graph, "MatMul", ["flat", "weights"], "scores");
      let last = "scores";
      if (work > 0) {
        node(graph, "MatMul", ["scores", "wide"], "busy_0");
        for (let step = 1; step <= work; step++)
          node(graph, "MatMul", [`busy_${step - 1}`, "square"], `busy_${step}`);
        // All of it is zero, and still has to be computed.
        node(graph, "MatMul", [`busy_${work}`, "narrow"], "nothing");
        node(graph, "Add", ["scores", "nothing"], "sum");
        last = "sum";
      }
      if (model.failsOnBright) {
        // A look-up by the first pixel's value, whose table is too short for bright ones.
        node(graph, "Gather", ["flat", "first"], "pixel", (list) =>
          list.message(5, (attribute) => attribute.text(1, "axis").integer(3, 1).integer(20, 2)),
        );
        node(graph, "Cast", ["pixel"], "index", (list) =>
          list.message(5, (attribute) => attribute.text(1, "to").integer(3, dataTypes.INT64).integer(20, 2)),
        );
        node(graph, "Gather", ["table", "index"], "zero");
        node(graph, "Add", [last, "zero"], "looked_up");
        last = "looked_up";
      }
      node(graph, "Softmax", [last], outputName);
      graph.text(2, "tiny");
      tensor(graph, "weights", [values, classes], weights);
      if (model.failsOnBright) {
        tensor(graph, "first", [1], new BigInt64Array([0n]));
        tensor(graph, "table", [200], new Float32Array(200));
      }
      if (work > 0) {
        tensor(graph, "wide", [classes, 512], new Float32Array(classes * 512));
        tensor(graph, "square", [512, 512], new Float32Array(512 * 512));
        tensor(graph, "narrow", [512, classes], new Float32Array(512 * classes));
      }
      valueInfo(graph, 11, inputName, inputType, [batch, ...dims]);
      valueInfo(graph, 12, outputName, "FP32", [batch, classes]);
    })
    .message(8, (opset) => opset.text(1, "").integer(2, 13))
    .finish();
}

/** The tiny model's probabilities of one image, computed here. */
export function tinyAnswer(pixels: readonly number[], weight = tinyWeight): number[] {
  const scores = Array.from({ length: tinyClasses }, (_, classIndex) =>
    pixels.reduce((sum, pixel, value) => sum + pixel * Math.fround(weight(value, classIndex)), 0),
  );
  const powers = scores.map((score) => Math.exp(score - Math.max(...scores)));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

/**
 * A folder as `npm run convert -- --local` leaves it, with these models; removed when the test ends.
 * @param models by name; `precision` as the manifest spells it
 */
export function preparedModels(
  models: Readonly<
    Record<
      string,
      TinyModel & { readonly precision: "FP32" | "FP16" | "INT8"; readonly isConverted?: boolean }
    >
  >,
): string {
  const folder = mkdtempSync(join(tmpdir(), "onnx-models-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const artefacts = Object.entries(models).map(
    ([name, { precision, isConverted = precision !== "FP32", ...model }]) => {
      const bytes = tinyModel(model);
      mkdirSync(join(folder, name, "1"), { recursive: true });
      writeFileSync(join(folder, name, "1", "model.onnx"), bytes);
      return {
        name,
        file: `${name}/1/model.onnx`,
        sha256: createHash("sha256").update(bytes).digest("hex"),
        precision,
        input: { name: "input", dataType: model.inputType ?? "FP32", shape: model.dims ?? tinyDims },
        output: { name: "probabilities", classes: model.classes ?? tinyClasses },
        labelsFile: "labels.txt",
        accuracy: isConverted ? { images: 40, top1Agreement: 1 } : null,
        standAloneSpeed: [1, 4].map((batchSize) => ({
          batchSize,
          imagesPerS: 100 * batchSize,
          latencyP50Ms: 10,
          latencyP95Ms: 12.5,
        })),
      };
    },
  );
  const labels = Array.from({ length: tinyClasses }, (_, index) => `class ${index}`);
  writeFileSync(join(folder, "labels.txt"), `${labels.join("\n")}\n`);
  const machine = { cpu: "Abacus", cores: 3, threads: 2 };
  writeFileSync(
    join(folder, "manifest.json"),
    JSON.stringify({ schemaVersion: 1, artefacts, machine, versions: {} }),
  );
  return folder;
}

function node(
  graph: WireWriter,
  operator: string,
  inputs: readonly string[],
  output: string,
  attributes?: (node: WireWriter) => void,
): void {
  graph.message(1, (list) => {
    for (const name of inputs) list.text(1, name);
    list.text(2, output).text(4, operator);
    attributes?.(list);
  });
}

function tensor(
  graph: WireWriter,
  name: string,
  dims: readonly number[],
  values: Float32Array | BigInt64Array,
): void {
  graph.message(5, (list) => {
    for (const dim of dims) list.integer(1, dim);
    list
      .integer(2, values instanceof Float32Array ? dataTypes.FP32 : dataTypes.INT64)
      .text(8, name)
      .bytes(9, Buffer.from(values.buffer));
  });
}

function valueInfo(
  graph: WireWriter,
  field: number,
  name: string,
  type: "FP32" | "UINT8",
  dims: readonly (number | string)[],
): void {
  graph.message(field, (info) =>
    info.text(1, name).message(2, (typeProto) =>
      typeProto.message(1, (tensorType) =>
        tensorType.integer(1, dataTypes[type]).message(2, (shape) => {
          for (const dim of dims)
            shape.message(1, (one) => (typeof dim === "number" ? one.integer(1, dim) : one.text(2, dim)));
        }),
      ),
    ),
  );
}
