/** The example under examples/ is a program that runs. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { input, runStack } from "../stack-engine/harness";

it(
  "serves one model in an existing cluster, with its components' own guarantees",
  { timeout: 120_000 },
  async () => {
    const values = {
      project: "test-project",
      location: "us-central1-a",
      cluster: "shared",
      bucket: "models-of-mine",
      model: "tftrt_fp16",
    };
    const config = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [`triton-on-existing-cluster:${key}`, value]),
    );
    const recording = await runStack({
      programDir: join(__dirname, "../../examples/existing-cluster"),
      mode: "up",
      config: { values: config, secretKeys: [] },
      invokes: {
        "gcp:container/getCluster:getCluster": (args) => ({
          ...args,
          id: "projects/test-project/locations/us-central1-a/clusters/shared",
          workloadIdentityConfigs: [{ workloadPool: "test-project.svc.id.goog" }],
          controlPlaneEndpointsConfigs: [
            { dnsEndpointConfigs: [{ endpoint: "shared.us-central1-a.gke.goog" }] },
          ],
          masterAuths: [],
        }),
      },
    });
    expect(recording.complaints).toEqual([]);
    const triton = recording.one("kubernetes:apps/v1:Deployment");
    expect(input(triton, "metadata.namespace")).toBe("triton");
    expect(triton.deletedWith).toBeFalsy();
    expect(recording.all.filter(({ type }) => type === "gcp:container/cluster:Cluster")).toEqual([]);
  },
);
