import { defineConfig } from "vitest/config";

/** Tests on a real Triton (no GPU needed) with a stand-in backend. One file at a time: they compare times and rates. */
export default defineConfig({
  test: {
    include: ["test/triton/**/*.test.ts"],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
