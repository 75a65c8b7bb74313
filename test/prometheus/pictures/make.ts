/**
 * Makes the pictures of docs/operations.md: three variants are loaded at rates around their limits, as a search does, then the best one
 * serves a steady load, and loses a server for a while.
 *
 *     DASHBOARD_PICTURES=docs/images npm run test:prometheus
 */
import { it } from "vitest";
import { dashboards } from "../../../monitoring/dashboards";
import { prometheusUid } from "../../../monitoring/data-sources";
import { variantModels } from "../harness/models";
import { scrapeIntervalS, slo, World } from "../harness/world";
import { drawDashboards } from "./draw";
import { writePicture } from "./png";

/** Requests per second over both servers, by variant: below the limit, above it, and closer from both sides. */
const rates: Readonly<Record<string, readonly number[]>> = {
  fp32_bs8: [30, 120, 70, 90],
  fp16_bs8: [60, 180, 110, 140],
  int8_bs8_count2: [100, 260, 160, 200],
};

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

it("makes the pictures", { timeout: 600_000 }, async () => {
  const folder = process.env["DASHBOARD_PICTURES"] ?? ".";
  const world = await World.start(variantModels);
  try {
    const fromS = Date.now() / 1000;
    for (const [modelName, tried] of Object.entries(rates)) {
      for (const ratePerS of tried)
        await world.trial({ modelName, shape: { kind: "poisson", ratePerS }, warmupS: 2, measureS: 10 });
    }
    const steady = {
      modelName: "int8_bs8_count2",
      shape: { kind: "poisson" as const, ratePerS: 80 },
      deadlineMs: 2000,
    };
    await world.trial({ ...steady, warmupS: 1, measureS: 45 }, async () => {
      await sleep(15_000);
      await world.stopTriton();
      await sleep(10_000);
      await world.startTriton();
    });
    const built = dashboards({
      ...{ sloPercentile: slo.percentile, sloBoundMs: slo.boundMs, scrapeIntervalS },
      dataSourceUid: prometheusUid,
      serverUsdPerH: 0.6,
    });
    const range = { fromS, toS: Date.now() / 1000, stepS: 1, window: "6s" };
    for (const { file, svg } of await drawDashboards(built, world.prometheus, range))
      await writePicture(folder, file, svg);
  } finally {
    await world.stop();
  }
});
