import { defineConfig } from "vitest/config";

/** Slow tests: real processes under load. One file at a time, so that they do not disturb each other's timing. */
export default defineConfig({
  test: {
    include: ["test/**/*.slow.test.ts"],
    exclude: ["**/node_modules/**", "test/engine/**", "test/triton/**"],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 60_000,
  },
});
