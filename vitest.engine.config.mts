import { defineConfig } from "vitest/config";

/** Tests on the real Pulumi engine and a real Kubernetes API server. One file at a time: two cores carry one cluster well. */
export default defineConfig({
  test: {
    include: ["test/engine/**/*.test.ts"],
    globalSetup: ["test/engine/global-setup.ts"],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
