import { InferenceSession, Tensor } from "onnxruntime-node";
import { expect, it } from "vitest";
import { noOpConfig, noOpOnnx, noOpOutput } from "../../tuning/no-op-model";
import type { TensorSpec } from "../../model-repo/variant";

it.each(["FP32", "UINT8"] as const)("the model that does nothing is a model: %s", async (type) => {
  const input: TensorSpec = { name: "pixels", type, dims: [4, 6, 3], format: null };
  const session = await InferenceSession.create(noOpOnnx(input));
  const values = Array.from({ length: 2 * 4 * 6 * 3 }, (_, index) => (index * 37) % 251);
  const data = type === "FP32" ? Float32Array.from(values) : Uint8Array.from(values);
  const answer = await session.run({ pixels: new Tensor(data, [2, ...input.dims]) });
  const { name, dims } = noOpOutput(input);
  expect(answer[name]!.dims).toEqual([2, ...dims]);
  const row = 6 * 3;
  const least = Array.from({ length: 8 }, (_, index) =>
    Math.min(...values.slice(index * row, (index + 1) * row)),
  );
  expect([...(answer[name]!.data as Float32Array)]).toEqual(least);
  expect(JSON.parse(noOpConfig(input))).toMatchObject({
    input: [{ name: "pixels", data_type: `TYPE_${type}` }],
  });
});
