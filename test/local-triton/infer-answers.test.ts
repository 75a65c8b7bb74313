import { describe, expect, it } from "vitest";
import { inferenceService } from "../../kserve/load-protos";
import { decodeClassifications, decodeInferResponse } from "../../kserve/wire";
import recorded from "./fixtures/grpc-answers.json";
import { CASES, PHOTO, request } from "./infer-cases";
import { rawCall, rawClient, rawInfer, startServer, tensor } from "./support";

/** Recorded cases of other methods. */
const OTHER_CASES = [
  "load unknown model",
  "unload unknown model",
  "ModelReady unknown",
  "ModelReady known",
  "ModelMetadata unknown",
  "ModelConfig unknown",
  "ModelStatistics unknown",
];

describe("answers to ModelInfer", () => {
  it("has every recorded case", () => {
    const asked = [...Object.keys(CASES), ...OTHER_CASES].sort();
    expect(asked).toEqual(recorded.answers.map((answer) => answer.case).sort());
  });

  it("gives the recorded code and text in every recorded case", async () => {
    const { grpcAddress } = await startServer([PHOTO, { ...PHOTO, name: "badinit" }], {
      loadModels: ["sim"],
    });
    const client = rawClient(grpcAddress);
    for (const expected of recorded.answers) {
      const asked = CASES[expected.case];
      if (asked === undefined) continue;
      const { code, message } = await rawInfer(client, asked);
      expect({ case: expected.case, code, message }).toEqual({ message: "", ...expected });
    }
  });

  it("gives the recorded answers of the control methods", async () => {
    const { grpcAddress } = await startServer([PHOTO]);
    const client = rawClient(grpcAddress);
    const service = inferenceService();
    const named = (name: string) => ({ name, version: "" });
    const answers = {
      "load unknown model": [service.RepositoryModelLoad, { model_name: "nope" }],
      "unload unknown model": [service.RepositoryModelUnload, { model_name: "nope" }],
      "ModelReady unknown": [service.ModelReady, named("nope")],
      "ModelReady known": [service.ModelReady, named("sim")],
      "ModelMetadata unknown": [service.ModelMetadata, named("nope")],
      "ModelConfig unknown": [service.ModelConfig, named("nope")],
      "ModelStatistics unknown": [service.ModelStatistics, named("nope")],
    } as const;
    for (const [name, [method, asked]] of Object.entries(answers)) {
      const serialize = method.requestSerialize;
      const { code, message } = await rawCall(client, method.path, serialize(asked));
      const expected = recorded.answers.find((answer) => answer.case === name);
      expect({ case: name, code, message }).toEqual({ message: "", ...expected });
    }
  });

  it("names the request in errors by its id", async () => {
    const { grpcAddress } = await startServer([PHOTO]);
    const answer = await rawInfer(rawClient(grpcAddress), request({ datatype: "INT32" }, { id: "abc-1" }));
    expect(answer.message).toMatch(/^\[request id: abc-1\] inference input/);
  });
});

describe("replies", () => {
  it("classifies: top classes with labels, the same for the same image whatever the batch", async () => {
    const { client } = await startServer([{}]);
    const ask = (seeds: readonly number[], classCount: number) =>
      client.infer({
        modelName: "sim",
        id: "r-1",
        inputName: "input",
        datatype: "FP32",
        shape: [seeds.length, 4, 4, 3],
        raw: Buffer.concat(seeds.map((seed) => tensor(48, seed))),
        outputName: "probabilities",
        classCount,
      });
    const batch = await ask([1, 2, 3], 2);
    expect(batch).toMatchObject({ modelName: "sim", modelVersion: "1", id: "r-1" });
    expect(batch.outputs[0]).toMatchObject({ name: "probabilities", datatype: "BYTES", shape: [3, 2] });
    const classes = decodeClassifications(batch.raw[0]!);
    expect(classes).toHaveLength(6);
    for (const { classIndex, label, score } of classes) {
      expect(label).toBe(`CLASS ${classIndex}`);
      expect(score).toBeGreaterThan(0);
      expect(score).toBeLessThan(1);
    }
    for (const [index, seed] of [1, 2, 3].entries()) {
      const alone = decodeClassifications((await ask([seed], 1)).raw[0]!);
      expect(alone[0]).toEqual(classes[index * 2]);
    }
  });

  it("sends the tensor when no classification is asked, with the best class where classification says", async () => {
    const { grpcAddress, client } = await startServer([{}]);
    const { reply } = await rawInfer(rawClient(grpcAddress), {
      model_name: "sim",
      inputs: [{ name: "input", datatype: "FP32", shape: [2, 4, 4, 3] }],
      raw_input_contents: [Buffer.concat([tensor(48, 5), tensor(48, 9)])],
    });
    const response = decodeInferResponse(reply!);
    expect(response.outputs[0]).toMatchObject({ datatype: "FP32", shape: [2, 10] });
    const scores = Array.from({ length: 20 }, (_unused, i) => response.raw[0]!.readFloatLE(i * 4));
    for (const [row, seed] of [5, 9].entries()) {
      const own = scores.slice(row * 10, row * 10 + 10);
      const top = decodeClassifications(
        (
          await client.infer({
            modelName: "sim",
            inputName: "input",
            datatype: "FP32",
            shape: [1, 4, 4, 3],
            raw: tensor(48, seed),
            outputName: "probabilities",
            classCount: 1,
          })
        ).raw[0]!,
      )[0]!;
      expect(own.indexOf(Math.max(...own))).toBe(top.classIndex);
      expect(Math.max(...own)).toBeCloseTo(top.score, 5);
      expect(own.reduce((sum, score) => sum + score, 0)).toBeLessThanOrEqual(1.0001);
    }
  });

  it("refuses what is no ModelInferRequest", async () => {
    const { grpcAddress } = await startServer([{}]);
    const answer = await rawCall(
      rawClient(grpcAddress),
      "/inference.GRPCInferenceService/ModelInfer",
      Buffer.from([0xff, 0xff, 0xff]),
    );
    expect(answer.code).toBe("INTERNAL");
    expect(answer.message).toMatch(/no ModelInferRequest/);
  });
});
