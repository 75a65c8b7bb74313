/** Questions to a model with the documents' shapes, right and wrong ones; fixtures/grpc-answers.json has a real Triton's answers. */
import type { Draft, ModelInferRequest } from "../../kserve/messages";
import { tensor, type TestModel } from "./support";

/** A model of the documents' shapes. */
export const PHOTO: TestModel = { dims: [224, 224, 3], classes: 1000 };
const VALUES = 224 * 224 * 3;
const image = tensor(VALUES);

type Draftable = Draft<ModelInferRequest>;

/** A correct request for PHOTO under the name "sim", with changes. */
export function request(
  input: Draft<ModelInferRequest["inputs"][number]> = {},
  rest: Draftable = {},
): Draftable {
  return {
    model_name: "sim",
    inputs: [{ name: "input", datatype: "FP32", shape: [1, 224, 224, 3], ...input }],
    outputs: [{ name: "probabilities" }],
    raw_input_contents: [image],
    ...rest,
  };
}

const ones = (count: number): number[] => new Array<number>(count).fill(1);

/** How the recorded cases were asked. */
export const CASES: Readonly<Record<string, Draftable>> = {
  ok: request(),
  "ok, response id echo": request({}, { id: "abc-1" }),
  "wrong shape dims (1,224,224,4)": request({ shape: [1, 224, 224, 4] }),
  "wrong rank (224,224,3)": request({ shape: [224, 224, 3] }),
  "wrong rank (1,150528)": request({ shape: [1, 150528] }),
  "zero batch (0,224,224,3)": request({ shape: [0, 224, 224, 3] }, { raw_input_contents: [Buffer.alloc(0)] }),
  "negative dim (-1,224,224,3)": request({ shape: [-1, 224, 224, 3] }),
  "wrong dtype INT32": request({ datatype: "INT32" }),
  "wrong dtype FP64": request({ datatype: "FP64" }),
  "unknown dtype FLOAT99": request({ datatype: "FLOAT99" }),
  "unknown model": request({}, { model_name: "nope" }),
  "empty model name": request({}, { model_name: "" }),
  "unknown version 7": request({}, { model_version: "7" }),
  'bad version "abc"': request({}, { model_version: "abc" }),
  "batch 65 > max_batch_size 64": request(
    { shape: [65, 224, 224, 3] },
    { raw_input_contents: [Buffer.alloc(65 * VALUES * 4)] },
  ),
  "raw content short by 4 bytes": request({}, { raw_input_contents: [image.subarray(4)] }),
  "raw content long by 4 bytes": request(
    {},
    { raw_input_contents: [Buffer.concat([image, Buffer.alloc(4)])] },
  ),
  "raw content empty": request({}, { raw_input_contents: [Buffer.alloc(0)] }),
  "no data at all (no raw, no contents)": request({}, { raw_input_contents: [] }),
  "contents.fp32_contents too few": request(
    { contents: { fp32_contents: ones(10) } },
    { raw_input_contents: [] },
  ),
  "both raw and contents": request({ contents: { fp32_contents: ones(VALUES) } }),
  "typed contents ok": request({ contents: { fp32_contents: ones(VALUES) } }, { raw_input_contents: [] }),
  "wrong input name": request({ name: "inputX" }),
  "wrong output name": request({}, { outputs: [{ name: "nope" }] }),
  "no outputs requested (all)": request({}, { outputs: [] }),
  "no inputs": request({}, { inputs: [], raw_input_contents: [] }),
  "same input twice": request(
    {},
    {
      inputs: [
        { name: "input", datatype: "FP32", shape: [1, 224, 224, 3] },
        { name: "input", datatype: "FP32", shape: [1, 224, 224, 3] },
      ],
      raw_input_contents: [image, image],
    },
  ),
  "extra unknown input": request(
    {},
    {
      inputs: [
        { name: "input", datatype: "FP32", shape: [1, 224, 224, 3] },
        { name: "extra", datatype: "FP32", shape: [1, 224, 224, 3] },
      ],
      raw_input_contents: [image, image],
    },
  ),
  "more raw_input_contents than inputs": request({}, { raw_input_contents: [image, image] }),
  "parameter timeout with string type": request({}, { parameters: { timeout: { string_param: "1000" } } }),
  "model in repository, never loaded (badinit)": request({}, { model_name: "badinit" }),
};
