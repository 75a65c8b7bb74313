import { copyFile, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterEach, beforeEach, expect, it } from "vitest";
import { classificationCount, decodeInferRequest } from "../../kserve/wire";
import { MAX_IMAGES, PayloadSource, type PayloadOptions } from "../../loadgen/payloads";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "payloads-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function saveFilled(name: string, level: number): Promise<void> {
  const background = { r: level, g: level, b: level };
  await sharp({ create: { width: 30, height: 20, channels: 3, background } }).toFile(join(folder, name));
}

function options(change: Partial<PayloadOptions> = {}): PayloadOptions {
  return {
    imageFolder: folder,
    modelName: "m",
    inputName: "in",
    outputName: "out",
    inputType: "FP32",
    ...change,
  };
}

it("makes one request an image, in file order, asking for the top class of the output", async () => {
  await saveFilled("b.png", 200);
  await saveFilled("a.png", 100);
  const payloads = await new PayloadSource().load(options());
  expect(payloads).toHaveLength(2);
  payloads.forEach((payload, i) => {
    const request = decodeInferRequest(payload);
    expect(request).toMatchObject({
      modelName: "m",
      inputs: [{ name: "in", datatype: "FP32", shape: [1, 224, 224, 3] }],
    });
    expect(request.outputs.map(({ name }) => name)).toEqual(["out"]);
    expect(classificationCount(request.outputs[0]!)).toBe(1);
    const [raw] = request.raw;
    expect(raw!.length).toBe(602_112);
    expect(payload.readFloatLE(raw!.offset)).toBe([100, 200][i]);
  });
});

it("makes small requests for a UINT8 input", async () => {
  await saveFilled("a.png", 100);
  const [payload] = await new PayloadSource().load(options({ inputType: "UINT8" }));
  const request = decodeInferRequest(payload!);
  expect(request.inputs[0]!.datatype).toBe("UINT8");
  expect(request.raw[0]!.length).toBe(150_528);
});

it("makes images of the model's own size and layout", async () => {
  const half = { r: 10, g: 20, b: 30 };
  await sharp({ create: { width: 30, height: 20, channels: 3, background: half } }).toFile(
    join(folder, "a.png"),
  );
  const [planes] = await new PayloadSource().load(options({ inputType: "UINT8", inputDims: [3, 4, 5] }));
  const request = decodeInferRequest(planes!);
  expect(request.inputs[0]!.shape).toEqual([1, 3, 4, 5]);
  const { offset, length } = request.raw[0]!;
  const values = [...planes!.subarray(offset, offset + length)];
  expect(values).toEqual([
    ...new Array<number>(20).fill(10),
    ...new Array<number>(20).fill(20),
    ...new Array<number>(20).fill(30),
  ]);
  const [pixels] = await new PayloadSource().load(options({ inputType: "UINT8", inputDims: [4, 5, 3] }));
  const raw = decodeInferRequest(pixels!).raw[0]!;
  expect([...pixels!.subarray(raw.offset, raw.offset + 6)]).toEqual([10, 20, 30, 10, 20, 30]);
  await expect(new PayloadSource().load(options({ inputDims: [4, 5] }))).rejects.toThrow(
    "[4, 5] is no RGB image: use [height, width, 3] or [3, height, width]",
  );
});

it("keeps decoded images for the next model, and sees a replaced file", async () => {
  await saveFilled("a.png", 100);
  const source = new PayloadSource();
  const first = (payloads: readonly Buffer[]): number => {
    const request = decodeInferRequest(payloads[0]!);
    return payloads[0]!.readFloatLE(request.raw[0]!.offset);
  };
  expect(first(await source.load(options()))).toBe(100);
  const other = await source.load(options({ modelName: "other" }));
  expect(decodeInferRequest(other[0]!).modelName).toBe("other");
  expect(first(other)).toBe(100);
  await saveFilled("b.png", 50);
  await copyFile(join(folder, "b.png"), join(folder, "a.png"));
  await utimes(join(folder, "a.png"), new Date(0), new Date(0));
  expect(first(await source.load(options()))).toBe(50);
});

it("names an image that cannot be decoded, and refuses a folder that would not fit into memory", async () => {
  await saveFilled("a.png", 100);
  await writeFile(join(folder, "bad.png"), "nothing");
  await expect(new PayloadSource().load(options())).rejects.toThrow(/image .*bad\.png cannot be decoded/);
  for (let i = 0; i < MAX_IMAGES; i++) await writeFile(join(folder, `${i}.png`), "");
  await expect(new PayloadSource().load(options())).rejects.toThrow(
    /has 130 images; the load generator holds at most 128/,
  );
});
