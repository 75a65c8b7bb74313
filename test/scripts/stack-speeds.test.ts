/** The way of a conversion's speeds from a stack's bucket to its target; the cluster is a stand-in. */
import { mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { prepareTarget } from "../../scripts/open-target";
import { parseTuneCommandLine } from "../../scripts/tune-options";
import { useFakeTools } from "./fake-tools";

const fp16 = findVariant("tftrt_fp16");
const fp32 = findVariant("tftrt_fp32");
const { none } = vi.hoisted(() => ({ none: async (): Promise<void> => undefined }));

vi.mock("../../targets/stack/read-outputs", () => ({
  readStackOutputs: async () => ({
    environment: "dev",
    project: "my-project",
    region: "us-central1",
    cluster: { location: "us-central1-a" },
    triton: { image: "i:25.02", gpuType: "nvidia-tesla-t4", gpuMachineType: "n1-standard-8", gpuSpot: false },
    variant: fp16,
    repositoryVariants: [fp16, fp32],
    modelRepository: { bucket: "models", url: "gs://models/models" },
    slo: { percentile: 95, boundMs: 100 },
    loadGenerator: { peakRatePerS: 3000 },
    sweepSize: {
      region: "us-central1",
      clusters: 1,
      bucketGib: 1,
      pools: [{ name: "gpu", nodes: 1, node: { machineType: "n1-standard-8" } }],
    },
    monitoring: null,
  }),
}));
vi.mock("../../targets/stack/kube", () => ({ Kube: { connect: none } }));
vi.mock("../../targets/stack/check-stack", () => ({ checkStack: async () => [] }));
vi.mock("../../targets/stack/stack-wire", () => ({
  stackWire: async () => ({ ceilingPerS: null, summary: "the way passes enough" }),
}));
vi.mock("../../targets/stack/connect-stack", async (original) => ({
  ...(await original<object>()),
  connectStack: async (options: object) => ({
    ...options,
    replicas: [{ pod: { node: null }, grpc: { address: "127.0.0.1:1" } }],
    servers: {
      addresses: ["127.0.0.1:1"],
      metadata: { name: "triton", version: "2.55.0" },
      metrics: { samples: [], urls: [], missing: null },
    },
    workers: 1,
    close: none,
  }),
  lockStack: async () => ({ confirm: none, release: none, isLost: false }),
}));

const fake = useFakeTools();

it("a stack's target knows what its conversion VM measured, and notes what it did not", async () => {
  const folder = join(fake.folder, "artefacts", fp16.artefact.name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, "manifest.json"),
    JSON.stringify({
      artefact: fp16.artefact.name,
      gpu: { name: "Tesla T4", computeCapability: "7.5" },
      standAloneSpeed: [{ batchSize: 64, imagesPerS: 990, latencyP95Ms: 64.6 }],
      files: [{ path: "1/model.savedmodel/saved_model.pb", bytes: 1, sha256: "ab".repeat(32) }],
    }),
  );
  fake.tool(
    "gcloud",
    `[ "$1 $2 $4 $5" = "storage cat --project my-project" ] || exit 64
cat "$W/\${3#gs://models/}" 2> /dev/null || { echo "The following URLs matched no objects or files" >&2; exit 1; }`,
  );
  vi.stubEnv("PATH", `${join(fake.folder, "bin")}${delimiter}${process.env["PATH"]}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const parsed = parseTuneCommandLine(["--stack", "dev"], []);
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  const target = await (await prepareTarget(parsed.options, "unused")).open(new Map());
  onTestFinished(() => target.close());
  expect(target.standAloneOf?.(fp16)).toEqual({
    batchSize: 64,
    imagesPerS: 990,
    latencyP95Ms: 64.6,
    basis: "measured",
    on: "Tesla T4",
  });
  expect(target.standAloneOf?.(fp32)).toBeNull();
  expect(target.artefactHash?.(fp16)).toMatch(/^[0-9a-f]{64}$/);
  expect(target.artefactHash?.(fp32)).toBeNull();
  expect(target.notes).toContain(
    "how fast models are alone is not known: there is no manifest of tftrt_fp32_bs64 in gs://models/artefacts (npm run convert)",
  );
});
