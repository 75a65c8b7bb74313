import type { Stack } from "@pulumi/pulumi/automation";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noEvidence } from "../../diagnose-up/evidence";
import { explain } from "../../diagnose-up/explain";
import type { Explanation } from "../../diagnose-up/explanation";
import { clusterType, poolType } from "./cloud/gke";
import { until } from "./cluster/program";
import { Environment } from "./environment";
import { destroy, failing, preview, summary, up } from "./operations";

/** Updates that fail on the way, and what makes the next one succeed. The stack is a dev stack without what is not needed. */
let environment: Environment;
let stack: Stack;

beforeAll(async () => {
  environment = await Environment.start();
  const config = {
    ...{
      project: "test-project",
      asleep: "true",
      monitoring: "false",
      loadGenerator: "false",
      conversionVm: "false",
    },
    gpuInitialNodes: "1",
  };
  stack = await environment.stack(
    "dev",
    Object.fromEntries(Object.entries(config).map(([key, value]) => [`triton-slo-stack:${key}`, { value }])),
  );
});
afterAll(() => environment.close());

/** The first explanation of what an operation printed. */
function explained(text: string): Explanation | undefined {
  return explain({ ...noEvidence, pulumiOutput: text })[0];
}
const existing = (type: string): number => environment.world.all(type).length;

describe("an update that fails goes on at the next up", () => {
  it("an API that Google has not switched on yet", async () => {
    environment.world.fail({ kind: "api-disabled", type: "gcp:compute/network:Network", times: 1 });
    const { text } = await failing(up(stack));
    expect(explained(text)?.gate).toBe("api");
    expect(explained(text)?.steps[0]?.command).toContain("gcloud services enable compute.googleapis.com");
    expect(existing(clusterType)).toBe(0);
  });

  it("a permission that the caller lacks", async () => {
    environment.world.fail({ kind: "permission-denied", type: clusterType, times: 1 });
    const { text } = await failing(up(stack));
    expect(explained(text)?.gate).toBe("permission");
    expect(explained(text)?.summary).toContain("container.clusters.create");
    expect(existing("gcp:compute/network:Network")).toBe(1);
  });

  it("an engine that is killed while the cluster comes up: no program is left, the next up finds the lock", async () => {
    const endSlow = environment.world.fail({ kind: "slow", type: clusterType, delayMs: 4000 });
    const child = environment.cli(["up", "--yes", "--skip-preview", "--stack", "dev"]);
    await until("Google has the request", async () => environment.world.pending(clusterType) === 1, 120_000);
    child.kill("SIGKILL");
    endSlow();
    await until("no program of it is left", async () => environment.leftovers().length === 0, 30_000);
    await until("Google has made the cluster all the same", async () => environment.gke.hasCluster, 60_000);

    const { text } = await failing(up(stack));
    expect(explained(text)?.gate).toBe("lock");
    expect(explained(text)?.steps[0]?.command).toBe("pulumi cancel");
  });

  it("after that the cluster that came up in the meantime is taken over, not made twice", async () => {
    await stack.cancel();
    const [cluster] = environment.world.all(clusterType);
    const exported = await stack.exportStack();
    const state = exported.deployment as {
      resources: { urn: string; type: string }[];
      pending_operations: { resource: { urn: string } }[];
    };
    expect(state.pending_operations.map(({ resource }) => resource.urn.split("::").at(-1))).toEqual([
      "cluster",
    ]);
    const urnOf = (type: string) => state.resources.find((resource) => resource.type === type)?.urn;
    const imported = await environment.run(
      ...["import", clusterType, "cluster", cluster!.id, "--stack", "dev", "--yes", "--skip-preview"],
      ...["--parent", `parent=${urnOf("triton-slo:index:Cluster")}`],
      ...[
        "--provider",
        `google=${urnOf("pulumi:providers:gcp")}`,
        "--protect=false",
        "--generate-code=false",
      ],
    );
    expect([imported.code, imported.text]).toEqual([0, expect.stringContaining("1 imported")]);
    const cleared = await environment.run(
      "refresh",
      "--yes",
      "--skip-preview",
      "--clear-pending-creates",
      "--stack",
      "dev",
    );
    expect([cleared.code, cleared.text]).toEqual([0, expect.any(String)]);
    environment.world.fail({ kind: "quota", type: poolType, name: /gpu/, times: 1 });
    const { text } = await failing(up(stack));
    expect(environment.world.all(clusterType).map((thing) => thing.id)).toEqual([cluster!.id]);
    // The other resources went on; the missing quota stopped the GPU pool alone.
    expect(explained(text)?.gate).toBe("quota");
    expect(explained(text)?.evidence.join()).toContain("NVIDIA_T4_GPUS");
    expect(environment.world.all(poolType).map((thing) => thing.logicalName)).toEqual(["system-pool"]);
  });

  it("a stockout leaves a broken pool behind, which the next up repairs", async () => {
    environment.world.fail({ kind: "stockout", type: poolType, name: /gpu/, times: 2 });
    const first = await failing(up(stack));
    expect(explained(first.text)?.gate).toBe("stockout");
    expect(environment.world.all(poolType).filter((thing) => thing.broken)).toHaveLength(1);
    // Still nothing to be had: the same answer, and no second pool.
    expect(explained((await failing(up(stack))).text)?.gate).toBe("stockout");
    expect(existing(poolType)).toBe(2);
    await up(stack);
    expect(environment.world.all(poolType).filter((thing) => thing.broken)).toEqual([]);
    expect(existing(poolType)).toBe(2);
    expect(summary(await preview(stack))).toEqual([]);
  });
});

describe("a destroy that fails goes on at the next one", () => {
  it("and leaves nothing", async () => {
    environment.world.fail({
      kind: "permission-denied",
      type: "gcp:compute/network:Network",
      operation: "delete",
      times: 1,
    });
    await failing(destroy(stack));
    expect(environment.gke.hasCluster).toBe(false);
    await destroy(stack);
    expect(environment.world.all()).toEqual([]);
    expect(environment.gke.orphans).toEqual([]);
  });
});
