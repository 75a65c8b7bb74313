import { defineConfig } from "vitest/config";

/** Fast tests: everything that needs no tool build and no real server of somebody else's. */
export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["**/node_modules/**", "test/**/*.slow.test.ts", "test/engine/**", "test/triton/**"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 20_000,
  },
});
