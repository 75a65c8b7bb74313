import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { KserveClient } from "../../kserve/client";
import { LocalTriton } from "../../local-triton/server";
import { findVariant } from "../../model-repo/catalogue";
import { payloadBytesOf } from "../../serving-model/t4";
import { writeProbeModel } from "../../targets/probe-model";

it.each(["tftrt_int8", "trt_int8"])("the probe takes what %s takes, and hardly any time", async (name) => {
  const modelRepository = mkdtempSync(join(tmpdir(), "probe-"));
  onTestFinished(() => rmSync(modelRepository, { recursive: true, force: true }));
  const { artefact } = findVariant(name);
  const probe = await writeProbeModel(modelRepository, findVariant(name));
  const server = await LocalTriton.start({ modelRepository });
  const client = new KserveClient(`127.0.0.1:${server.ports.grpc}`);
  onTestFinished(async () => {
    client.close();
    await server.close();
  });
  const { input, output } = artefact;
  const raw = Buffer.alloc(payloadBytesOf(input));
  const request = {
    modelName: probe.name,
    inputName: input.name,
    datatype: input.type,
    shape: [1, ...input.dims],
    raw,
  };
  await client.infer({ ...request, outputName: output.name, classCount: 1 });
  const [model] = await client.modelStatistics(probe.name);
  // Model time: what the machine adds is not in it.
  expect(model!.inference_stats!.compute_infer!.ns).toBe(1_000_000);
  expect(model!.inference_stats!.compute_input!.ns).toBe(0);
});
