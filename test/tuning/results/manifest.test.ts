import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeImages, hashOfImages } from "../../../tuning/results/images";
import {
  manifestFileName,
  readManifest,
  withoutCredentials,
  writeManifest,
  type Manifest,
} from "../../../tuning/results/manifest";
import { manifestDifferences, notCompared } from "../../../tuning/results/manifest-differences";
import type { GpuFacts } from "../../../tuning/results/gpu-facts";
import { manifest } from "./manifest-fixture";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "manifest-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("manifest.json", () => {
  it("reads back what was written, less the credentials", () => {
    expect(readManifest(folder)).toBeNull();
    writeManifest(folder, manifest);
    expect(readFileSync(join(folder, manifestFileName), "utf8")).not.toContain("secret");
    expect(readManifest(folder)).toEqual({
      ...manifest,
      options: { ...manifest.options, metrics: "http://host:8002/metrics" },
    });
    expect(readdirSync(folder)).toEqual([manifestFileName]);
  });

  it("names what is wrong with a damaged one", () => {
    writeFileSync(join(folder, manifestFileName), "{");
    expect(() => readManifest(folder)).toThrow("is not JSON");
    writeFileSync(
      join(folder, manifestFileName),
      JSON.stringify({ ...manifest, seed: "x", imagesHash: undefined }),
    );
    expect(() => readManifest(folder)).toThrow(/at seed[\s\S]*at imagesHash/);
  });
});

describe("withoutCredentials", () => {
  it.each([
    ["http://user:pw@host:1/p?token=t#f", "http://host:1/p#f"],
    ["see https://t0k3n@host/ and grpc://a:b@c:8001.", "see https://host/ and grpc://c:8001."],
    ["triton:8001", "triton:8001"],
    ["mail a@b.example", "mail a@b.example"],
    ["is it? yes", "is it? yes"],
  ])("%s -> %s", (text, expected) => {
    expect(withoutCredentials({ list: [text] })).toEqual({ list: [expected] });
  });

  it("leaves values without addresses alone", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!JSON.stringify(value).includes("://"));
        expect(withoutCredentials(value)).toEqual(value);
      }),
    );
  });
});

describe("images", () => {
  it("are identified by content and order, not by name", () => {
    writeFileSync(join(folder, "a.jpg"), "one");
    writeFileSync(join(folder, "b.jpg"), "two");
    writeFileSync(join(folder, "c.jpg"), "one");
    const hash = (...names: string[]) =>
      hashOfImages(describeImages(names.map((name) => join(folder, name))));
    expect(hash("a.jpg", "b.jpg")).toBe(hash("c.jpg", "b.jpg"));
    expect(hash("a.jpg", "b.jpg")).not.toBe(hash("b.jpg", "a.jpg"));
    expect(hash("a.jpg")).not.toBe(hash("a.jpg", "c.jpg"));
    expect(describeImages([join(folder, "a.jpg")])[0]).toMatchObject({ file: "a.jpg", bytes: 3 });
  });

  it("must be there and readable", () => {
    expect(() => describeImages([])).toThrow("--images");
    expect(() => describeImages([join(folder, "missing.jpg")])).toThrow("missing.jpg");
  });
});

describe("manifestDifferences", () => {
  it("finds nothing between a sweep and itself at another time", () => {
    const later = { ...manifest, startedAt: "2026-04-02T09:30:00.000Z", options: {} };
    expect(manifestDifferences(manifest, later)).toEqual([]);
  });

  it("names every change that may explain other numbers", () => {
    const [first, ...others] = manifest.variants;
    if (!first) throw new Error("no fixture");
    const changed: Manifest = {
      ...manifest,
      seed: 2,
      imagesHash: "ee".repeat(32),
      variants: [
        { ...first, modelHash: "ff".repeat(32), variant: { ...first.variant, instanceCount: 2 } },
        ...others.slice(1),
      ],
    };
    expect(manifestDifferences(manifest, changed)).toEqual([
      "seed: 1 before, 2 now",
      "images: cdcdcdcdcdcd before, eeeeeeeeeeee now",
      "settings of original differ",
      "model files of original: unknown before, ffffffffffff now",
    ]);
  });
});

describe("GPUs in two manifests", () => {
  const clocksMHz = { maxGraphics: 1980, maxMemory: 3201, setGraphics: 1980, setMemory: 3201 };
  const gpu: GpuFacts = {
    devices: [{ uuid: "GPU-1", name: "NVIDIA H200", powerLimitW: 700, clocksMHz }],
    driver: "570.86.15",
    machineImage: null,
    notKnown: null,
  };
  const real: Manifest = {
    ...manifest,
    target: { ...manifest.target, simulated: false },
    variants: manifest.variants.map((entry) => ({ ...entry, modelHash: "ff".repeat(32) })),
    gpu,
  };

  it("differ by device, driver, clocks and power limit", () => {
    const [device] = gpu.devices;
    const other: Manifest = {
      ...real,
      gpu: {
        ...gpu,
        driver: "580.95",
        devices: [{ ...device!, powerLimitW: 500, clocksMHz: { ...clocksMHz, setGraphics: 1500 } }],
      },
    };
    expect(manifestDifferences(real, real)).toEqual([]);
    expect(manifestDifferences(real, other)).toEqual([
      "GPU driver: 570.86.15 before, 580.95 now",
      "GPU clocks: SM up to 1980, memory up to 3201 MHz before, SM set to 1500 of 1980, memory up to 3201 MHz now",
      "GPU power limit: 700 W before, 500 W now",
    ]);
    const elsewhere = { ...real, gpu: { ...gpu, devices: [{ ...device!, uuid: "GPU-2" }] } };
    expect(manifestDifferences(real, elsewhere)).toEqual([
      "GPU: NVIDIA H200 (GPU-1) before, NVIDIA H200 (GPU-2) now",
    ]);
  });

  it("that are not known are said not to be, once", () => {
    const hidden: Manifest = {
      ...real,
      gpu: { ...gpu, driver: null, notKnown: "the servers run on other machines" },
    };
    expect(notCompared(real, real)).toEqual([]);
    expect(notCompared(hidden, hidden)).toEqual(["GPU driver and clocks: the servers run on other machines"]);
    // What one of them does not know is no difference.
    expect(manifestDifferences(real, hidden)).toEqual([]);
    const old: Manifest = { ...hidden, gpu: undefined };
    expect(notCompared(old, real)).toEqual([
      "GPU driver and clocks: a sweep of an older version did not record them",
    ]);
  });

  it("are not missed where none is, but a model's files are", () => {
    const names = manifest.variants.map(({ variant }) => variant.name).join(", ");
    expect(notCompared(manifest, { ...manifest, gpu: null })).toEqual([
      `model files of ${names}: a server does not show them`,
    ]);
  });
});
