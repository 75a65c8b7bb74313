import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPrices, loadPricesFile, PricesError } from "../../pricing/prices";

describe("the price table", () => {
  const prices = loadPrices();

  it("says when it was known and that it must be checked", () => {
    expect(prices).toMatchObject({ asOf: "2026-11", currency: "USD", defaultRegion: "us-central1" });
    expect(prices.note).toMatch(/check/i);
    for (const url of Object.values(prices.sources)) expect(url).toMatch(/^https:\/\/cloud\.google\.com\//);
  });

  it("has everything that the stack's defaults need", () => {
    for (const name of ["n1-standard-4", "n1-standard-8", "n1-standard-16", "e2-standard-4", "n2-standard-8"])
      expect(Object.keys(prices.machines)).toContain(name);
    expect(Object.keys(prices.disks)).toEqual(expect.arrayContaining(["pd-balanced", "pd-ssd"]));
    expect(prices.accelerators["nvidia-tesla-t4"]).toMatchObject({ usdPerH: 0.35 });
  });

  it("is consistent: a machine costs its vCPUs and memory at one rate a family, and spot costs less", () => {
    const perCore = new Map<string, number>();
    for (const [name, { vcpus, usdPerH, spotUsdPerH }] of Object.entries(prices.machines)) {
      const family = name.slice(0, 2);
      expect(usdPerH / vcpus).toBeCloseTo(perCore.get(family) ?? usdPerH / vcpus, 5);
      perCore.set(family, usdPerH / vcpus);
      expect(spotUsdPerH ?? 0).toBeLessThan(usdPerH);
    }
    expect(prices.machines["n1-standard-8"]?.usdPerH).toBe(0.379998);
    expect(prices.machines["e2-standard-4"]?.usdPerH).toBe(0.134023);
  });
});

describe("overrides", () => {
  it("replace single figures and add whole entries", () => {
    const g2 = { vcpus: 8, memoryGib: 32, usdPerH: 0.85, spotUsdPerH: null, source: "machines" };
    const prices = loadPrices({
      asOf: "2027-02",
      machines: { "n1-standard-8": { usdPerH: 0.4 }, "g2-standard-8": g2 },
    });
    expect(prices.asOf).toBe("2027-02");
    expect(prices.machines["n1-standard-8"]).toEqual({
      ...loadPrices().machines["n1-standard-8"],
      usdPerH: 0.4,
    });
    expect(prices.machines["g2-standard-8"]).toEqual(g2);
    expect(prices.disks).toEqual(loadPrices().disks);
  });

  it.each([
    [{ machines: { "n1-standard-8": { usdPerH: -1 } } }, /^prices\.machines\.n1-standard-8\.usdPerH: /],
    [{ machines: { "n1-standard-8": { usdPerHour: 1 } } }, /^prices\.machines\.n1-standard-8: .*usdPerHour/],
    [{ machines: { new: { usdPerH: 1 } } }, /prices\.machines\.new\.vcpus: /],
    [{ gpus: {} }, /^prices\.: .*gpus/],
    [{ asOf: "soon" }, /^prices\.asOf: is no month; use YYYY-MM/],
    [{ defaultRegion: "mars" }, /^prices\.defaultRegion: "mars" is not among the regions/],
    [
      { cluster: { source: "hearsay" } },
      /^prices\.cluster\.source: "hearsay" is not among the sources: machines/,
    ],
    [[], /no object/],
    ["x", /no object/],
    [null, /no object/],
  ])("refuse %j", (overrides, message) => {
    expect(() => loadPrices(overrides)).toThrow(PricesError);
    expect(() => loadPrices(overrides)).toThrow(message);
  });

  it("tell all problems at once", () => {
    expect(() => loadPrices({ asOf: "x", cluster: { usdPerH: "much" } })).toThrow(
      /prices\.asOf.*\nprices\.cluster\.usdPerH/,
    );
  });

  it("come from a file, whose name is in every error", () => {
    const folder = mkdtempSync(join(tmpdir(), "prices-"));
    try {
      const file = join(folder, "own.json");
      writeFileSync(file, '{"cluster": {"usdPerH": 0}}');
      expect(loadPricesFile(file).cluster.usdPerH).toBe(0);
      writeFileSync(file, "{");
      expect(() => loadPricesFile(file)).toThrow(/own\.json cannot be read as JSON/);
      writeFileSync(file, '{"asOf": 3}');
      expect(() => loadPricesFile(file)).toThrow(/own\.json: prices\.asOf/);
      expect(() => loadPricesFile(join(folder, "none.json"))).toThrow(/none\.json cannot be read/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
