/** Where the speeds of running servers' artefacts come from: a stack's bucket through gcloud, and files that are named. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { writeRepository } from "../../model-repo/write-repository";
import { bucketReader } from "../../scripts/conversion/gcloud";
import { prepareTarget } from "../../scripts/open-target";
import { speedsInBucket, speedsInFiles } from "../../scripts/stand-alone";
import { parseTuneCommandLine } from "../../scripts/tune-options";
import { LocalServer } from "../../targets/local-server";
import { TargetError } from "../../targets/target-error";
import { useFakeTools } from "./fake-tools";

const fake = useFakeTools();
const fp16 = findVariant("tftrt_fp16");
const int8 = findVariant("tftrt_int8_bs16_count4");
const original = findVariant("original");

/** As `convert/run.py` writes it. */
function manifest(artefact: string, computeCapability = "7.5"): string {
  const standAloneSpeed = [1, 16, 64].map((batchSize) => ({
    batchSize,
    imagesPerS: 30 * batchSize,
    latencyP50Ms: 33,
    latencyP95Ms: 34,
  }));
  const gpu = {
    name: computeCapability === "7.5" ? "Tesla T4" : "NVIDIA L4",
    computeCapability,
    driver: "1",
  };
  return JSON.stringify({ schemaVersion: 1, artefact, gpu, standAloneSpeed });
}

function put(path: string, text: string): string {
  const file = join(fake.folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

/** A `gcloud` that reads the bucket `models` from a folder, or fails as it is told. */
function bucket(failure = ""): Parameters<typeof speedsInBucket>[0] {
  fake.tool(
    "gcloud",
    `${failure}
case "$1 $2 $3 $4 $5" in
  "storage cat gs://models/"*" --project my-project") ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac
cat "$W/objects/\${3#gs://models/}" 2> /dev/null || { echo "ERROR: (gcloud.storage.cat) The following URLs matched no objects or files" >&2; exit 1; }`,
  );
  vi.stubEnv("PATH", `${join(fake.folder, "bin")}${delimiter}${process.env["PATH"]}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const read = bucketReader({ project: "my-project", bucket: "models" });
  return { bucket: "models", read, gpuType: "nvidia-tesla-t4" };
}

describe("the speeds of a stack's artefacts", () => {
  it("are read from the manifests that its conversion VM left in the bucket", async () => {
    put("objects/artefacts/tftrt_fp16_bs64/manifest.json", manifest("tftrt_fp16_bs64"));
    put("objects/artefacts/tftrt_int8_bs16/manifest.json", manifest("tftrt_int8_bs16"));
    const { standAloneOf, notes } = await speedsInBucket(bucket(), [fp16, int8]);
    const alone = { latencyP95Ms: 34, basis: "measured", on: "Tesla T4" };
    expect(standAloneOf(fp16)).toEqual({ ...alone, batchSize: 64, imagesPerS: 1920 });
    expect(standAloneOf(int8)).toEqual({ ...alone, batchSize: 16, imagesPerS: 480 });
    // The same artefact with smaller batches, as an exploration proposes it.
    expect(standAloneOf({ ...fp16, name: "proposed", maxBatchSize: 32 })).toMatchObject({ batchSize: 16 });
    expect(notes).toEqual([]);
  });

  it("are not known where there is no manifest, which is said once", async () => {
    put("objects/artefacts/tftrt_fp16_bs64/manifest.json", manifest("tftrt_fp16_bs64"));
    const { standAloneOf, notes } = await speedsInBucket(bucket(), [fp16, int8, original]);
    expect(standAloneOf(fp16)).not.toBeNull();
    expect([standAloneOf(int8), standAloneOf(original)]).toEqual([null, null]);
    expect(notes).toEqual([
      "how fast models are alone is not known: there is no manifest of tftrt_int8_bs16, original in gs://models/artefacts (npm run convert)",
    ]);
  });

  it("of another kind of GPU, or of a broken manifest, are not used", async () => {
    put("objects/artefacts/tftrt_fp16_bs64/manifest.json", manifest("tftrt_fp16_bs64", "8.9"));
    put("objects/artefacts/tftrt_int8_bs16/manifest.json", "{}");
    const { standAloneOf, notes } = await speedsInBucket(bucket(), [fp16, int8]);
    expect([standAloneOf(fp16), standAloneOf(int8)]).toEqual([null, null]);
    expect(notes.join("\n")).toContain(
      "tftrt_fp16_bs64 was measured on NVIDIA L4, but nvidia-tesla-t4 serves",
    );
    expect(notes.join("\n")).toMatch(
      /gs:\/\/models\/artefacts\/tftrt_int8_bs16\/manifest\.json is no manifest of a conversion/,
    );
  });

  it("do not keep a sweep from running when they may not be read", async () => {
    const denied = "echo 'ERROR: 403 you do not have storage.objects.get' >&2; exit 1";
    const { standAloneOf, notes } = await speedsInBucket(bucket(denied), [fp16, int8]);
    expect(standAloneOf(fp16)).toBeNull();
    expect(notes).toEqual([
      expect.stringMatching(/^how fast models are alone is not known: gs:\/\/models.* cannot be read: .*403/),
    ]);
  });

  it("need gcloud, which is said once for all artefacts", async () => {
    const there = bucket();
    vi.stubEnv("PATH", join(fake.folder, "nowhere"));
    const { notes } = await speedsInBucket(there, [fp16, int8]);
    expect(notes).toEqual([expect.stringMatching(/not known: --stack needs gcloud: install it/)]);
  });
});

describe("--conversion-manifest", () => {
  it("gives the speeds of models that have the artefact's name or the variant's", async () => {
    const file = put("m.json", manifest("tftrt_fp16_bs64"));
    const { standAloneOf } = await speedsInFiles([file], [fp16, int8]);
    expect(standAloneOf(fp16)).toMatchObject({ batchSize: 64, imagesPerS: 1920, on: "Tesla T4" });
    expect(standAloneOf(int8)).toBeNull();
    const own: Variant = { ...fp16, name: "mine", artefact: { ...fp16.artefact, name: "Photo" } };
    const named = put("n.json", manifest("mine"));
    expect((await speedsInFiles([named], [own])).standAloneOf(own)).toMatchObject({ batchSize: 64 });
    expect((await speedsInFiles(null, [own])).standAloneOf(own)).toBeNull();
  });

  it.each<[string, string | null, RegExp]>([
    [
      "about other models",
      manifest("trt_int8_bs64"),
      /m\.json is about trt_int8_bs64, but .* tftrt_fp16_bs64/,
    ],
    ["no manifest", "[]", /m\.json is no manifest of a conversion/],
    ["missing", null, /m\.json cannot be read: ENOENT/],
  ])("is refused by name when it is %s", async (_, text, message) => {
    const file = text === null ? join(fake.folder, "m.json") : put("m.json", text);
    const refused = speedsInFiles([file], [fp16]);
    await expect(refused).rejects.toThrow(TargetError);
    await expect(refused).rejects.toThrow(message);
  });

  it("reaches the target of a server that runs already", async () => {
    const repository = mkdtempSync(join(tmpdir(), "stand-alone-"));
    onTestFinished(() => rmSync(repository, { recursive: true, force: true }));
    await writeRepository([fp16], repository);
    const server = await LocalServer.start({
      repository,
      modelName: fp16.name,
      executor: "simulated-t4",
      timeDilation: 1,
      metricsIntervalMs: 250,
    });
    onTestFinished(() => server.stop());
    const file = put("m.json", manifest("tftrt_fp16_bs64"));
    const words = ["--triton", server.grpcAddress, "--metrics", server.metricsUrl, "--workers", "1"];
    const parsed = parseTuneCommandLine([...words, "--conversion-manifest", file], []);
    if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
    const prepared = await prepareTarget(parsed.options, imagesFolder);
    const target = await prepared.open(new Map());
    onTestFinished(() => target.close());
    expect(target.standAloneOf?.(fp16)).toMatchObject({ batchSize: 64, imagesPerS: 1920 });
  }, 60_000);
});
