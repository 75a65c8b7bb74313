import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { findVariant, originalArtefact } from "../../model-repo/catalogue";
import { toModelConfig } from "../../model-repo/model-config";
import type { Variant } from "../../model-repo/variant";
import { writeRepository } from "../../model-repo/write-repository";
import { configDifferences, RepositoryControl } from "../../tuning/repository-control";
import { inferSmall, testConfig } from "../local-triton/support";
import { startTriton, startTritonSubject, subjects } from "./harness/subjects";

/** A variant of the test model "sim". */
function simVariant(change: Partial<Variant> = {}): Variant {
  return {
    name: "sim",
    artefact: { ...originalArtefact, name: "sim" },
    maxBatchSize: 64,
    instanceCount: 1,
    queueDelayUs: 5000,
    preferredBatchSizes: [],
    published: null,
    ...change,
  };
}

function controlOf(addresses: readonly string[]): RepositoryControl {
  const control = new RepositoryControl({ addresses });
  onTestFinished(() => control.close());
  return control;
}

async function catalogueServer(variants: readonly Variant[], ...loaded: readonly string[]) {
  const repository = mkdtempSync(join(tmpdir(), "triton-control-"));
  onTestFinished(() => rmSync(repository, { recursive: true, force: true }));
  await writeRepository(variants, repository);
  return startTriton({ repository, loadModels: loaded });
}

const loadedOn = async ({ client }: Awaited<ReturnType<typeof startTriton>>): Promise<string[]> =>
  (await client.repositoryIndex({ readyOnly: true })).map(({ name }) => name);

describe("server control on a real Triton", () => {
  it("serves one variant of the repository after the other, alone, and at the end what was served before", async () => {
    const names = ["original", "tftrt_fp16_bs8_count4", "tftrt_int8_bs16_count4"];
    const server = await catalogueServer(names.map(findVariant), names[0]!);
    const control = controlOf([server.grpcAddress]);
    for (const name of names.slice(1)) {
      expect(await control.serve(findVariant(name))).toBe(name);
      expect(await loadedOn(server)).toEqual([name]);
      expect(configDifferences(await server.client.modelConfig(name), findVariant(name))).toEqual([]);
    }
    await control.restore();
    expect(await loadedOn(server)).toEqual(["original"]);
  });

  it("serves variants that the repository does not have as overrides of their artefact's model", async () => {
    const base = findVariant("tftrt_fp16");
    const server = await catalogueServer([{ ...base, name: base.artefact.name }]);
    const control = controlOf([server.grpcAddress]);
    const wanted: readonly Variant[] = [
      { ...base, name: "small", maxBatchSize: 8, instanceCount: 4, preferredBatchSizes: [8] },
      { ...base, name: "none_preferred", maxBatchSize: 16, preferredBatchSizes: [], queueDelayUs: 0 },
      { ...base, name: "several", maxBatchSize: 32, preferredBatchSizes: [4, 16], queueDelayUs: 700 },
    ];
    for (const variant of wanted) {
      expect(await control.serve(variant)).toBe(base.artefact.name);
      const inForce = await server.client.modelConfig(base.artefact.name);
      expect(configDifferences(inForce, variant)).toEqual([]);
      // Nothing else changed, e.g. tensors, labels and warm-up.
      const expected = toModelConfig({ ...variant, name: base.artefact.name });
      expect(inForce.output[0]!.label_filename).toBe(expected.output[0]!.label_filename);
      expect(Object.keys(inForce.model_warmup)).toHaveLength(2);
    }
    // What the repository says is read once; engines and graphs take too long to be loaded for it again and again.
    const loads = (): number => server.server.log.match(/successfully loaded/g)?.length ?? 0;
    await expect.poll(loads).toBe(1 + wanted.length);
    await control.restore();
    expect(await loadedOn(server)).toEqual([]);
    await server.client.repositoryLoad(base.artefact.name);
    expect((await server.client.modelConfig(base.artefact.name)).max_batch_size).toBe(64);
  });

  it("controls every replica, and names the one that lacks the model", async () => {
    const [one, other] = await Promise.all([startTritonSubject([{}]), startTritonSubject([{}])]);
    const control = controlOf([one.grpcAddress, other.grpcAddress]);
    const variant = simVariant({ maxBatchSize: 4, instanceCount: 2 });
    await control.serve(variant);
    for (const { client } of [one, other])
      expect(configDifferences(await client.modelConfig("sim"), variant)).toEqual([]);
    await inferSmall(one.client, 1);
    await inferSmall(other.client, 2, 3);
    expect(await control.batchSizes("sim")).toEqual({ 1: 1, 3: 1 });
    await control.restore();
    for (const { client } of [one, other]) expect((await client.modelConfig("sim")).max_batch_size).toBe(64);

    const third = await startTritonSubject([{ name: "other" }]);
    const pair = controlOf([one.grpcAddress, third.grpcAddress]);
    await expect(pair.serve(variant)).rejects.toThrow(
      new RegExp(`^${third.grpcAddress} has no model for sim in its repository \\(it has: other\\)`),
    );
  });

  it("names the server, the variant and where the reason is when a model cannot be loaded", async () => {
    const server = await startTritonSubject([{}, { name: "broken", config: { backend: "absent" } }], {
      loadModels: ["sim"],
    });
    const control = controlOf([server.grpcAddress]);
    await expect(control.serve(simVariant({ name: "broken" }))).rejects.toThrow(
      /could not load broken: load failed for model 'broken'.*absent.*The reason is in the server's log/s,
    );
    await control.restore();
    expect((await server.client.repositoryIndex({ readyOnly: true })).map(({ name }) => name)).toEqual([
      "sim",
    ]);
    await inferSmall(server.client);
  });
});

describe.each(subjects)("server control on %s", (_name, start) => {
  const two = { instance_group: [{ kind: "KIND_GPU" as const, count: 2 }, { kind: "KIND_GPU" as const }] };

  it("leaves a model alone that is served as wanted", async () => {
    const { client, grpcAddress } = await start([
      { config: { dynamic_batching: { max_queue_delay_microseconds: 5000 } } },
    ]);
    await inferSmall(client);
    const control = controlOf([grpcAddress]);
    await control.serve(simVariant());
    await control.restore();
    // Statistics restart when a model is loaded anew.
    expect((await client.modelStatistics("sim"))[0]!.inference_count).toBe(1);
  });

  it("puts the variant's instances into one group, and several groups back at the end", async () => {
    const { client, grpcAddress } = await start([{ config: two }]);
    const before = await client.modelConfig("sim");
    const control = controlOf([grpcAddress]);
    await control.serve(simVariant({ instanceCount: 3 }));
    expect((await client.modelConfig("sim")).instance_group.map(({ count }) => count)).toEqual([3]);
    await control.restore();
    expect(await client.modelConfig("sim")).toEqual(before);
  });

  it("turns dynamic batching on where it was off, and brings an override of somebody else's back", async () => {
    const { client, grpcAddress } = await start([{}]);
    await client.repositoryLoad("sim", JSON.stringify({ ...testConfig(), max_batch_size: 7 }));
    const before = await client.modelConfig("sim");
    expect(before.dynamic_batching ?? null).toBeNull();
    const control = controlOf([grpcAddress]);
    await control.serve(simVariant({ queueDelayUs: 0 }));
    expect((await client.modelConfig("sim")).dynamic_batching).toBeTruthy();
    await control.restore();
    expect(await client.modelConfig("sim")).toEqual(before);
  });

  it("without explicit control: measures what is served, and says how to get anything else", async () => {
    const batching = { dynamic_batching: { max_queue_delay_microseconds: 5000 } };
    const { client, grpcAddress } = await start([{ config: batching }, { name: "other" }], {
      modelControlMode: "none",
      loadModels: [],
    });
    const control = controlOf([grpcAddress]);
    expect(await control.serve(simVariant())).toBe("sim");
    await expect(control.serve(simVariant({ maxBatchSize: 8, instanceCount: 2 }))).rejects.toThrow(
      /does not let models be loaded, and it serves sim with max_batch_size 64 instead of 8; instance count 1 instead of 2.*--model-control-mode=explicit/,
    );
    await control.restore();
    expect(await client.modelReady("sim")).toBe(true);
  });
});
