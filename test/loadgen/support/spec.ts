import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import type { LoadSpec } from "../../../loadgen/load-spec";

/** A small load on a server that answers class 7, label `seven`, score 0.5. */
export function loadSpec(change: Partial<LoadSpec> & Pick<LoadSpec, "addresses" | "imageFolder">): LoadSpec {
  return {
    id: `run-${Math.random().toString(36).slice(2)}`,
    modelName: "model",
    inputName: "input",
    outputName: "probabilities",
    inputType: "UINT8",
    knownAnswers: null,
    scoreTolerance: 0.01,
    checkEvery: 1,
    shape: { kind: "constant", ratePerS: 250 },
    seed: 1,
    warmupS: 0.1,
    measureS: 0.4,
    sloBoundMs: 1000,
    deadlineMs: 3000,
    maxInFlight: 1000,
    connectionsPerAddress: 1,
    transport: "lean",
    timeDilation: 1,
    ...change,
  };
}

/** A new folder with this many small images. */
export async function imageFolder(images: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "loadgen-images-"));
  for (let i = 0; i < images; i++) {
    const background = { r: 40 * i, g: 10, b: 10 };
    await sharp({ create: { width: 8, height: 8, channels: 3, background } }).toFile(
      join(folder, `${i}.png`),
    );
  }
  return folder;
}
