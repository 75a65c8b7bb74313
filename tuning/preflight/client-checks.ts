/** What the load generator needs, checked on this machine. */
import { listImages } from "../../loadgen/image-tensor";
import { startLocalCluster } from "../../loadgen/local-cluster";
import { PayloadSource } from "../../loadgen/payloads";
import type { Variant } from "../../model-repo/variant";
import { failed, ok, type Check } from "./check";

/** Images can be decoded for every variant's input; says the bytes of a request. */
export async function checkImages(folder: string, variants: readonly Variant[]): Promise<Check> {
  const name = "images";
  try {
    const files = await listImages(folder);
    const source = new PayloadSource();
    const sizes = new Set<number>();
    for (const { name: modelName, artefact } of variants) {
      const { input, output } = artefact;
      const payloads = await source.load({
        imageFolder: folder,
        modelName,
        inputName: input.name,
        outputName: output.name,
        inputType: input.type,
        inputDims: input.dims,
      });
      // Names differ by a few bytes from model to model; the image decides.
      sizes.add(Math.round((payloads[0]?.length ?? 0) / 1000));
    }
    const kilobytes = [...sizes].sort((a, b) => a - b).join(" or ");
    return ok(name, `${files.length} in ${folder}, ${kilobytes} kB a request`);
  } catch (error) {
    return failed(name, messageOf(error), "give a folder of JPEG or PNG photographs with --images");
  }
}

/** Load workers start and register with their controller. */
export async function checkWorkers(workers: number): Promise<Check> {
  const name = "load workers";
  const from = performance.now();
  try {
    const cluster = await startLocalCluster({ workers });
    const seconds = (performance.now() - from) / 1000;
    await cluster.close();
    return ok(name, `${workers} on this machine, connected after ${seconds.toFixed(1)} s`);
  } catch (error) {
    return failed(name, messageOf(error), "free some memory, or ask for fewer with --workers");
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
