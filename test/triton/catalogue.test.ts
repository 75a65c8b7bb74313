import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { catalogue, tftrtArtefact } from "../../model-repo/catalogue";
import { toConfigOverrideJson, toModelConfig } from "../../model-repo/model-config";
import { readLabels } from "../../model-repo/repository";
import type { ModelArtefact, Platform, Variant } from "../../model-repo/variant";
import { writeRepository } from "../../model-repo/write-repository";
import { decodeClassifications } from "../../kserve/wire";
import { inferSmall } from "../local-triton/support";
import { startTriton } from "./harness/subjects";

async function repositoryOf(variants: readonly Variant[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "triton-catalogue-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await writeRepository(variants, folder);
  return folder;
}

/** The fp16 artefact as it would be for another backend. */
function artefactFor(platform: Platform): ModelArtefact {
  return { ...tftrtArtefact("fp16", 16), name: `fp16_${platform}`, platform };
}

/** What the catalogue does not have: other platforms, no preferred sizes, several of them, small images. */
const others: readonly Variant[] = [
  ...(["tensorrt_plan", "onnxruntime_onnx"] as const).map((platform, index) => ({
    name: `other_${platform}`,
    artefact: artefactFor(platform),
    maxBatchSize: 16,
    instanceCount: 3,
    queueDelayUs: index * 3000,
    preferredBatchSizes: [],
    published: null,
  })),
  {
    name: "other_preferred",
    artefact: {
      ...artefactFor("tensorrt_plan"),
      input: { name: "input", type: "FP32", dims: [4, 4, 3], format: "FORMAT_NHWC" },
    },
    maxBatchSize: 16,
    instanceCount: 1,
    queueDelayUs: 1500,
    preferredBatchSizes: [4, 8],
    published: null,
  },
];

describe("generated configurations on a real Triton", () => {
  it("load READY under their own platform, and are in force as predicted, defaults included", async () => {
    const variants = [...catalogue, ...others];
    const { client } = await startTriton({
      repository: await repositoryOf(variants),
      loadModels: variants.map(({ name }) => name),
    });
    const index = await client.repositoryIndex();
    expect(index).toEqual(
      variants
        .map(({ name }) => ({ name, version: "1", state: "READY", reason: "" }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
    for (const variant of variants) {
      const inForce = await client.modelConfig(variant.name);
      expect(withoutNulls(inForce), variant.name).toEqual(withoutNulls(toModelConfig(variant)));
    }
  });

  it("the same configurations as overrides of one model", async () => {
    const [base, ...rest] = catalogue;
    const { client } = await startTriton({
      repository: await repositoryOf([base!]),
      loadModels: [base!.name],
    });
    for (const variant of rest) {
      const renamed = { ...variant, name: base!.name };
      await client.repositoryLoad(base!.name, toConfigOverrideJson(renamed));
      expect(withoutNulls(await client.modelConfig(base!.name))).toEqual(
        withoutNulls(toModelConfig(renamed)),
      );
    }
  });

  it("answer with the labels of the labels file", async () => {
    const variant = others.at(-1)!;
    const { client } = await startTriton({
      repository: await repositoryOf([variant]),
      loadModels: [variant.name],
    });
    const [top] = decodeClassifications((await inferSmall(client, 3, 1, variant.name)).raw[0]!);
    expect(top!.label).toBe(readLabels(variant.artefact.labelsFile!)[top!.classIndex]);
  });
});

/** Absent messages are null from the wire and missing in our own objects. */
function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_key, part: unknown) => (part === null ? undefined : part)));
}
