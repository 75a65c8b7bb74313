import { describe, expect, it } from "vitest";
import { ConversionManifestError, parseConversionManifest } from "../../model-repo/conversion-manifest";
import { measuredSpeedAt } from "../../model-repo/stand-alone-speed";

const speed = (batchSize: number, imagesPerS: number) => ({
  batchSize,
  imagesPerS,
  latencyP50Ms: 2,
  latencyP95Ms: 3,
});
const speeds = [speed(8, 1800), speed(1, 400), speed(64, 2600)];
const ofVm = {
  schemaVersion: 1,
  artefact: "tftrt_fp16_bs64",
  gpu: { name: "Tesla T4", computeCapability: "7.5", driver: "580.95" },
  standAloneSpeed: speeds,
};

describe("a conversion's manifest", () => {
  it("of the VM tells the speeds of its artefact and the GPU", () => {
    expect(parseConversionManifest(JSON.stringify(ofVm), "m.json")).toEqual([
      { artefact: "tftrt_fp16_bs64", on: "Tesla T4", computeCapability: "7.5", speeds, filesHash: null },
    ]);
    const withoutGpu = parseConversionManifest(JSON.stringify({ ...ofVm, gpu: null }), "m.json");
    expect(withoutGpu).toMatchObject([{ on: null, computeCapability: null }]);
  });

  it("of a local preparation tells those of all, and the machine", () => {
    const local = {
      artefacts: [
        { name: "net_fp32", standAloneSpeed: speeds, sha256: "ab".repeat(32) },
        { name: "net_int8", standAloneSpeed: [] },
      ],
      machine: { cpu: "Some CPU", cores: 2, threads: 1 },
    };
    expect(parseConversionManifest(JSON.stringify(local), "m.json")).toEqual([
      {
        ...{ artefact: "net_fp32", on: "Some CPU, 1 thread", computeCapability: null, speeds },
        filesHash: "ab".repeat(32),
      },
      {
        ...{ artefact: "net_int8", on: "Some CPU, 1 thread", computeCapability: null, speeds: [] },
        filesHash: null,
      },
    ]);
  });

  it("has one hash for all files, whatever their order", () => {
    const one = { path: "1/model.plan", sha256: "ab".repeat(32) };
    const other = { path: "1/variables/index", sha256: "cd".repeat(32) };
    const hashOf = (...files: unknown[]) =>
      parseConversionManifest(JSON.stringify({ ...ofVm, files }), "m.json")[0]!.filesHash;
    expect(hashOf(one, other)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashOf(one, other)).toBe(hashOf(other, one));
    expect(hashOf(one, other)).not.toBe(hashOf(one, { ...other, sha256: "ee".repeat(32) }));
  });

  it.each([
    ["{", /^m\.json is not JSON/],
    ["[]", /^m\.json is no manifest of a conversion with speeds/],
    ["{}", /artefact/],
    [JSON.stringify({ ...ofVm, standAloneSpeed: [speed(8, 0)] }), /standAloneSpeed\[0\]\.imagesPerS/],
  ])("that is none is refused by name: %s", (text, message) => {
    expect(() => parseConversionManifest(text, "m.json")).toThrow(ConversionManifestError);
    expect(() => parseConversionManifest(text, "m.json")).toThrow(message);
  });
});

describe("the speed at a variant's batch size", () => {
  it("is that of the largest batch that the variant serves", () => {
    const at = (maxBatchSize: number) => measuredSpeedAt(speeds, maxBatchSize, "Tesla T4");
    expect(at(64)).toEqual({
      batchSize: 64,
      imagesPerS: 2600,
      latencyP95Ms: 3,
      basis: "measured",
      on: "Tesla T4",
    });
    expect(at(63)).toMatchObject({ batchSize: 8, imagesPerS: 1800 });
    expect(at(8)).toMatchObject({ batchSize: 8 });
    expect(at(1)).toMatchObject({ batchSize: 1 });
    expect(measuredSpeedAt([speed(8, 1800)], 4, null)).toBeNull();
    expect(measuredSpeedAt([], 4, null)).toBeNull();
  });
});
