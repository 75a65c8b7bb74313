import { defineConfig } from "vitest/config";

/**
 * With DASHBOARD_PICTURES=FOLDER no test runs: the pictures of the documentation are made instead, in about five minutes, and need
 * chromium.
 */
const makesPictures = process.env["DASHBOARD_PICTURES"] !== undefined;

/** Rules, alerts and dashboards on a real Prometheus that finds and reads real servers. One file at a time: they compare rates. */
export default defineConfig({
  test: {
    include: [makesPictures ? "test/prometheus/pictures/make.ts" : "test/prometheus/**/*.test.ts"],
    pool: "forks",
    // Real processes on a shared machine: one more try in CI, reported as such. On a desk a failure shows at once.
    retry: process.env["CI"] ? 1 : 0,
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
