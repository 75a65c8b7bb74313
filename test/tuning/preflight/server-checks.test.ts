import { describe, expect, it } from "vitest";
import type { KserveClient } from "../../../kserve/client";
import { anyFailed, failed, ok, renderChecks, warning } from "../../../tuning/preflight/check";
import { checkMetrics, checkServer } from "../../../tuning/preflight/server-checks";
import { makeVariant } from "../make";

/** A server of this version that has the model "a", loaded or not. */
function server(version: string, isLoaded: boolean): KserveClient {
  return {
    address: "gpu:8001",
    serverMetadata: async () => ({ name: "triton", version, extensions: [] }),
    serverLive: async () => true,
    repositoryIndex: async () => [{ name: "a", version: "1", state: "", reason: "" }],
    modelReady: async () => isLoaded,
  } as unknown as KserveClient;
}

describe("server version", () => {
  const savedModel = makeVariant("a");
  const plan = { ...savedModel, artefact: { ...savedModel.artefact, platform: "tensorrt_plan" as const } };

  it.each(["2.51.0", "2.55.0"])("%s has the TensorFlow backend", async (version) => {
    expect((await checkServer(server(version, false), [savedModel])).state).toBe("ok");
  });

  it.each(["2.56.0", "2.73.0", "3.0.0"])(
    "%s has none any more: SavedModels cannot be served",
    async (version) => {
      const check = await checkServer(server(version, false), [plan, savedModel]);
      expect(check.state).toBe("failed");
      expect(check.found).toContain(`triton ${version} at gpu:8001`);
      expect(check.fix).toMatch(/Triton 25\.02 \(2\.55\) or older, or convert the model to ONNX/);
      expect((await checkServer(server(version, false), [plan])).state).toBe("ok");
      // Somebody has built the backend.
      expect((await checkServer(server(version, true), [savedModel])).state).toBe("ok");
    },
  );
});

it("metrics that cannot be read are a warning with its consequence", () => {
  expect(checkMetrics([], [], "port 8002 is closed")).toEqual([
    warning("metrics", "port 8002 is closed", expect.stringContaining("no batch size") as string),
  ]);
  const gpu = (name: string, value: number) => ({ name, labels: { gpu_uuid: "g" }, value });
  const samples = [gpu("nv_gpu_utilization", 0), gpu("nv_gpu_memory_total_bytes", 16e9)];
  expect(checkMetrics(samples, ["http://a"], null)).toEqual([
    ok("metrics", "http://a"),
    ok("GPU", "1, 16.0 GB"),
  ]);
});

it("the table has a line a check and the fix below", () => {
  const checks = [
    ok("server", "fine"),
    failed("model of a", "missing", "upload it"),
    warning("GPU", "absent", "see"),
  ];
  expect(renderChecks(checks)).toBe(
    [
      "ok       server      fine",
      "FAILED   model of a  missing",
      "                     -> upload it",
      "warning  GPU         absent",
      "                     -> see",
    ].join("\n"),
  );
  expect(anyFailed(checks)).toBe(true);
  expect(anyFailed([checks[0]!, checks[2]!])).toBe(false);
});
