import { defineConfig } from "vitest/config";

/** Rules, alerts and dashboards on a real Prometheus that finds and reads real servers. One file at a time: they compare rates. */
export default defineConfig({
  test: {
    include: ["test/prometheus/**/*.test.ts"],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
