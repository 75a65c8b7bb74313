import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { imageToTensor, listImages } from "../../loadgen/image-tensor";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "image-tensor-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

type Rgb = readonly [number, number, number];

/** A raw image from a function of (x, y). */
function raw(width: number, height: number, pixel: (x: number, y: number) => readonly number[]): sharp.Sharp {
  const values: number[] = [];
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) values.push(...pixel(x, y));
  const channels = (values.length / width / height) as 1 | 2 | 3 | 4;
  return sharp(Buffer.from(values), { raw: { width, height, channels } });
}

async function save(name: string, image: sharp.Sharp): Promise<string> {
  const file = join(folder, name);
  await image.toFile(file);
  return file;
}

async function uint8(file: string, height: number, width: number): Promise<number[]> {
  return [...(await imageToTensor(file, { height, width, type: "UINT8" }))];
}

function expectFilled(values: readonly number[], [r, g, b]: Rgb, tolerance: number): void {
  for (let i = 0; i < values.length; i += 3) {
    expect(Math.abs(values[i]! - r)).toBeLessThanOrEqual(tolerance);
    expect(Math.abs(values[i + 1]! - g)).toBeLessThanOrEqual(tolerance);
    expect(Math.abs(values[i + 2]! - b)).toBeLessThanOrEqual(tolerance);
  }
}

describe("layout", () => {
  it("is NHWC, rows first, unscaled", async () => {
    const file = await save(
      "pixels.png",
      raw(2, 2, (x, y) => [10 + x, 20 + y, 30]),
    );
    expect(await uint8(file, 2, 2)).toEqual([10, 20, 30, 11, 20, 30, 10, 21, 30, 11, 21, 30]);
  });

  it("FP32 holds the same values 0..255 as little-endian floats", async () => {
    const file = await save(
      "floats.png",
      raw(3, 1, (x) => [x, 128, 255]),
    );
    const tensor = await imageToTensor(file, { height: 1, width: 3, type: "FP32" });
    expect(tensor).toHaveLength(3 * 3 * 4);
    expect(Array.from({ length: 9 }, (_, i) => tensor.readFloatLE(4 * i))).toEqual([
      0, 128, 255, 1, 128, 255, 2, 128, 255,
    ]);
  });

  it("is 602,112 bytes for 224 x 224 FP32 and 150,528 for UINT8", async () => {
    const file = await save(
      "photo.jpg",
      raw(450, 338, (x, y) => [x % 256, y % 256, 99]),
    );
    expect(await imageToTensor(file, { height: 224, width: 224, type: "FP32" })).toHaveLength(602_112);
    expect(await imageToTensor(file, { height: 224, width: 224, type: "UINT8" })).toHaveLength(150_528);
  });
});

describe("resize", () => {
  // Made with Pillow 13.0: Image.resize((12, 10), Image.BILINEAR) of the same pattern.
  const pillow =
    "0srBh8qJNspLJcocccoxxMpt3MqqksrfQMrUH8qZZspcscom0m2Oh21WNm0iJW0pcW1ixG2g3G3Xkm3aQG2kH21nZm0tsW0b0iJWhyIlNiIlJSJccSKaxCLT3CLdkiKqQCJtHyIxZiIdsSJG0l4kh14iNl5WJV6UcV7PxF7g3F6wkl5yQF42H14cZl5GsV590sIgh8JRNsKOJcLKccLixMK13MJ4ksI7QMIbH8JBZsJ+scK10s1Rh82JNs3FJc3jcc27xM1+3M1Bks0bQM07H814Zs21sc3i0m2Jh23ANm3jJW3AcW2DxG1G3G0ckm02QG1yH22wZm3gsW3U0iLAhyLjNiLGJSKJcSJMxCId3CIxkiJtQCKqHyLdZiLTsSKg0l7lh17LNl6PJV5RcV4gxF4t3F5nkl6kQF7aH17XZl6gsV5o0rvRh7uaNrtdJbskcbskxLtc3LuZkrvUQLvfH7uqZrttsbs1";

  it("agrees with Pillow's bilinear within 2 levels on average, 8 at most", async () => {
    const wave = (v: number, half: number): number =>
      Math.floor((Math.abs((v % (2 * half)) - half) * 255) / half);
    const file = await save(
      "waves.png",
      raw(90, 68, (x, y) => [wave(x, 23), wave(y, 17), wave(x + y, 31)]),
    );
    const expected = [...Buffer.from(pillow, "base64")];
    const differences = (await uint8(file, 10, 12)).map((value, i) => Math.abs(value - expected[i]!));
    expect(Math.max(...differences)).toBeLessThanOrEqual(8);
    expect(differences.reduce((sum, value) => sum + value, 0) / differences.length).toBeLessThan(2);
  });

  it("does not keep the aspect ratio: both ends of a wide image are there", async () => {
    const file = await save(
      "wide.png",
      raw(40, 10, (x) => (x < 20 ? [255, 0, 0] : [0, 0, 255])),
    );
    const values = await uint8(file, 4, 4);
    expect(values.slice(0, 3)).toEqual([255, 0, 0]);
    expect(values.slice(9, 12)).toEqual([0, 0, 255]);
  });

  it("of a JPEG starts from the full-size image, as of a PNG (sharp#3066, #4231)", async () => {
    const picture = (): sharp.Sharp => raw(256, 256, (x, y) => [x, y, (x + y) >> 1]);
    const jpeg = await uint8(
      await save("same.jpg", picture().jpeg({ quality: 100, chromaSubsampling: "4:4:4" })),
      16,
      16,
    );
    const png = await uint8(await save("same.png", picture()), 16, 16);
    expect(Math.max(...jpeg.map((value, i) => Math.abs(value - png[i]!)))).toBeLessThanOrEqual(2);
  });
});

describe("what image files can hold", () => {
  it("CMYK JPEG: colours come out right, not inverted (sharp#1649)", async () => {
    const file = await save(
      "cmyk.jpg",
      raw(16, 16, () => [200, 100, 50])
        .toColourspace("cmyk")
        .jpeg({ quality: 100 }),
    );
    expect((await sharp(file).metadata()).space).toBe("cmyk");
    // the blue of this orange lies outside the CMYK profile's gamut
    expectFilled(await uint8(file, 8, 8), [199, 94, 21], 6);
  });

  it("grey: three equal channels (sharp#1533, #3385)", async () => {
    const file = await save("grey.png", raw(8, 8, () => [77]).toColourspace("b-w"));
    expect((await sharp(file).metadata()).channels).toBe(1);
    expectFilled(await uint8(file, 4, 4), [77, 77, 77], 0);
  });

  it("grey with alpha: blended on white", async () => {
    const file = await save("grey-alpha.png", raw(8, 8, () => [0, 0]).toColourspace("b-w"));
    expectFilled(await uint8(file, 4, 4), [255, 255, 255], 0);
  });

  it("alpha: hidden colour does not show, half-transparent red on white is pink (sharp#2637)", async () => {
    expectFilled(
      await uint8(
        await save(
          "clear.png",
          raw(8, 8, () => [255, 0, 0, 0]),
        ),
        4,
        4,
      ),
      [255, 255, 255],
      0,
    );
    expectFilled(
      await uint8(
        await save(
          "half.png",
          raw(8, 8, () => [255, 0, 0, 128]),
        ),
        4,
        4,
      ),
      [255, 127, 127],
      1,
    );
  });

  it("16 bits a channel: scaled to 8", async () => {
    const file = await save("deep.png", raw(8, 8, () => [200, 100, 50]).toColourspace("rgb16"));
    expect((await sharp(file).metadata()).depth).toBe("ushort");
    expectFilled(await uint8(file, 4, 4), [200, 100, 50], 1);
  });

  it("EXIF orientation is applied: a 40x20 file with orientation 6 is a 20x40 picture", async () => {
    const file = await save(
      "turned.jpg",
      raw(40, 20, (x) => (x < 20 ? [255, 0, 0] : [0, 0, 255]))
        .withMetadata({ orientation: 6 })
        .jpeg({ quality: 100 }),
    );
    const values = await uint8(file, 40, 20);
    expectFilled(values.slice(0, 20 * 3), [255, 0, 0], 6);
    expectFilled(values.slice(-20 * 3), [0, 0, 255], 6);
  });
});

describe("bad input", () => {
  it("a bomb is refused before it is decoded (sharp#2373)", async () => {
    const bomb = { create: { width: 10_000, height: 6000, channels: 3 as const, background: "black" } };
    const file = await save("bomb.png", sharp(bomb).png({ compressionLevel: 1 }));
    await expect(uint8(file, 2, 2)).rejects.toThrow(/image .*bomb\.png cannot be decoded: .*pixel limit/);
  });

  it("a file that is no image, or a cut one, is named", async () => {
    const text = join(folder, "text.jpg");
    await writeFile(text, "this is no image");
    await expect(uint8(text, 2, 2)).rejects.toThrow(/image .*text\.jpg cannot be decoded: /);
    const whole = await raw(200, 200, (x, y) => [x, y, (x * y) % 256])
      .jpeg()
      .toBuffer();
    const cut = join(folder, "cut.jpg");
    await writeFile(cut, whole.subarray(0, whole.length / 2));
    await expect(uint8(cut, 2, 2)).rejects.toThrow(/image .*cut\.jpg cannot be decoded: /);
  });

  it("a missing folder, a file instead of a folder and an empty folder are told apart and named", async () => {
    await expect(listImages(join(folder, "nowhere"))).rejects.toThrow(
      /folder .*nowhere cannot be read: .*ENOENT/,
    );
    const file = join(folder, "just-a-file.png");
    await writeFile(file, "");
    await expect(listImages(file)).rejects.toThrow(/folder .*just-a-file\.png cannot be read: .*ENOTDIR/);
    const empty = join(folder, "empty");
    await mkdir(empty);
    await writeFile(join(empty, "README.md"), "no image");
    await expect(listImages(empty)).rejects.toThrow(
      /folder .*empty has no image: put at least one file with ending \.jpg/,
    );
  });
});

it("lists images sorted by name, whatever their ending, without hidden and other files", async () => {
  const mixed = join(folder, "mixed");
  await mkdir(mixed);
  for (const name of ["b.PNG", "a.jpg", "c.jpeg", ".hidden.jpg", "notes.txt", "B.webp"])
    await writeFile(join(mixed, name), "");
  expect(await listImages(mixed)).toEqual(
    ["B.webp", "a.jpg", "b.PNG", "c.jpeg"].map((name) => join(mixed, name)),
  );
});
