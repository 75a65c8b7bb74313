/** A manifest for the tests of results and report. */
import { describeHost, lawToJson, type Manifest } from "../../../tuning/results/manifest";
import { slo, variants } from "../fixtures/outcomes";

export const manifest: Manifest = {
  schemaVersion: 1,
  project: { name: "triton-slo-stack", version: "0.1.0" },
  node: "v20.20.2",
  host: describeHost(),
  target: {
    kind: "local",
    description: "local-triton, simulated T4",
    simulated: true,
    serverName: "triton",
    serverVersion: "2.51.0",
    identity: "local-triton 0.1.0",
  },
  options: { load: "poisson", effort: "quick", metrics: "http://user:secret@host:8002/metrics?token=secret" },
  seed: 1,
  slo: { ...slo },
  load: "poisson",
  workers: 2,
  images: [{ file: "a.jpg", bytes: 10, sha256: "ab".repeat(32) }],
  imagesHash: "cd".repeat(32),
  variants: variants.map((variant) => ({
    variant,
    modelHash: null,
    law: lawToJson({
      hostMsPerImage: 0.55,
      gpuMsPerBatch: 4,
      gpuMsPerImage: 2.75,
      ingressRequestsPerS: Infinity,
    }),
    timeDilation: 1.5,
  })),
  startedAt: "2026-03-02T09:30:00.000Z",
  resumedAt: [],
  endedAt: null,
};
