import { defineConfig } from "vitest/config";

/** Fast tests: everything that needs no tool build and no real server of somebody else's. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [
      "**/node_modules/**",
      "test/**/*.slow.test.ts",
      "test/engine/**",
      "test/triton/**",
      "test/prometheus/**",
    ],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 2,
    testTimeout: 40_000,
    hookTimeout: 60_000,
  },
});
