import { describe, expect, it } from "vitest";
import { findVariant, originalArtefact } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { runPreflight } from "../../scripts/run-preflight";
import { findServers } from "../../targets/address";
import { addressWire } from "../../targets/address-wire";
import { anyFailed, renderChecks } from "../../tuning/preflight/check";
import { PHOTO } from "../local-triton/infer-cases";
import { startLocalSubject, startTritonSubject, type SubjectOptions } from "./harness/subjects";

async function preflight(
  variants: readonly Variant[],
  options: SubjectOptions = {},
  start = startTritonSubject,
) {
  const { client, grpcAddress, metricsUrl } = await start(
    [
      { ...PHOTO, name: "original" },
      { name: "small", config: { instance_group: [{ kind: "KIND_GPU" }] } },
    ],
    options,
  );
  const before = await client.repositoryIndex();
  const servers = await findServers([grpcAddress], [metricsUrl]);
  const checks = await runPreflight({
    servers,
    variants,
    imageFolder: imagesFolder,
    workers: 1,
    cores: 2,
    isHere: true,
  });
  // Nothing was loaded or unloaded.
  expect(await client.repositoryIndex()).toEqual(before);
  return { checks, text: renderChecks(checks) };
}

/** A variant of the model "small", whose image is [4, 4, 3]. */
const small: Variant = {
  ...findVariant("original"),
  name: "small",
  artefact: {
    ...originalArtefact,
    name: "small",
    input: { ...originalArtefact.input, dims: [8, 8, 3], type: "UINT8" },
    output: { ...originalArtefact.output, name: "probability" },
  },
};

describe("preflight on a real Triton", () => {
  it("finds all well, and says what a server without a GPU cannot show", async () => {
    const { checks, text } = await preflight([findVariant("original")]);
    expect(anyFailed(checks), text).toBe(false);
    expect(text).toMatch(/ok +server +triton 2\.51\.0 at 127\.0\.0\.1:\d+, \d+\.\d ms away/);
    expect(text).toMatch(/ok +model control +explicit/);
    expect(text).toMatch(/ok +model of original +original, loaded, FP32 \[224, 224, 3\]/);
    expect(text).toMatch(/ok +metrics +http:/);
    expect(text).toMatch(/warning +GPU +GPU metrics absent\n +-> on a machine with a GPU: start Triton/);
    expect(text).toMatch(
      /warning +place of workers +the load workers run on the machine of 127\.0\.0\.1:\d+ .*\n +-> run this command/,
    );
    expect(text).toMatch(/ok +images +3 in .*, 602 kB a request/);
    expect(text).toMatch(/ok +load workers +1 on this machine/);
  });

  it("names every failure with its fix", async () => {
    const { checks, text } = await preflight([findVariant("tftrt_int8"), small, findVariant("original")], {
      modelControlMode: "none",
      loadModels: [],
    });
    expect(anyFailed(checks)).toBe(true);
    expect(text).toMatch(
      /warning +model control +not allowed .*only what is served now can be measured\n +-> start Triton with/,
    );
    expect(text).toMatch(
      /FAILED +model of tftrt_int8 +not in the repository.*original, small\n +-> upload tftrt_int8\/ or tftrt_int8_bs64\//,
    );
    expect(text).toMatch(
      /FAILED +model of small +small: input "input" is FP32, not UINT8; input "input" is \[4, 4, 3\], not \[8, 8, 3\]; output "probability" does not exist; did you mean "probabilities"/,
    );
    expect(text).toMatch(/ok +model of original/);
  });

  it("tries the way to the server with a model that does nothing, and takes it away again", async () => {
    const { client, grpcAddress } = await startTritonSubject([{ ...PHOTO, name: "original" }]);
    const before = await client.repositoryIndex();
    const { artefact } = findVariant("original");
    const wire = { address: grpcAddress, artefact, imageFolder: imagesFolder, workers: 1, maxRatePerS: 40 };
    const { summary } = await addressWire(wire);
    // A busy machine may send late; then it says so.
    expect(summary).toMatch(
      /^the way from the load workers passes (all of )?\d+ requests\/s of 602 kB|is not known: client-bound/,
    );
    expect((await client.repositoryIndex()).filter(({ state }) => state === "READY")).toEqual(
      before.filter(({ state }) => state === "READY"),
    );
  });

  it("sees the GPU of a server that has one", async () => {
    const { text } = await preflight([findVariant("original")], {}, startLocalSubject);
    expect(text).toMatch(/ok +GPU +1, 15\.8 GB/);
  });
});
