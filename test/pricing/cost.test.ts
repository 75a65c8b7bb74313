import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  costOfLoad,
  nodeUsdPerH,
  replicasForLoad,
  stackCost,
  usdPerMillionInferences,
} from "../../pricing/cost";
import { loadPrices, PricesError } from "../../pricing/prices";

const prices = loadPrices();
const gpuNode = { machineType: "n1-standard-8", accelerator: { type: "nvidia-tesla-t4", count: 1 } };
const rate = fc.double({ min: 1e-3, max: 1e5, noNaN: true });
const cost = fc.double({ min: 1e-6, max: 1e4, noNaN: true });

describe("nodeUsdPerH", () => {
  it("adds machine, accelerator and disk", () => {
    expect(nodeUsdPerH(prices, gpuNode)).toBeCloseTo(0.379998 + 0.35, 9);
    expect(nodeUsdPerH(prices, { ...gpuNode, disk: { type: "pd-balanced", sizeGib: 100 } })).toBeCloseTo(
      0.729998 + 10 / 730,
      9,
    );
    expect(nodeUsdPerH(prices, { ...gpuNode, spot: true })).toBeCloseTo(0.08 + 0.14, 9);
    expect(
      nodeUsdPerH(prices, { ...gpuNode, accelerator: { type: "nvidia-tesla-t4", count: 4 } }),
    ).toBeCloseTo(1.779998, 9);
  });

  it("follows the region", () => {
    const factors = prices.regions["asia-northeast1"]!;
    const expected = 0.379998 * factors.machines + 0.35 * factors.accelerators + (17 * factors.disks) / 730;
    const node = { ...gpuNode, disk: { type: "pd-ssd", sizeGib: 100 }, region: "asia-northeast1" };
    expect(nodeUsdPerH(prices, node)).toBeCloseTo(expected, 9);
  });

  it.each([
    [
      { machineType: "n1-standard-7" },
      /no machines "n1-standard-7" \(known: n1-standard-4, .*; add it as an override/,
    ],
    [{ machineType: "toString" }, /no machines "toString"/],
    [{ ...gpuNode, accelerator: { type: "h100", count: 1 } }, /no accelerators "h100"/],
    [{ ...gpuNode, disk: { type: "floppy", sizeGib: 1 } }, /no disks "floppy"/],
    [{ ...gpuNode, region: "mars" }, /no region "mars" \(known: us-central1/],
    [
      { machineType: "n2-standard-8", spot: true },
      /no spot price for n2-standard-8; override machines\.n2-standard-8\.spotUsdPerH/,
    ],
  ])("names what the table lacks: %j", (node, message) => {
    expect(() => nodeUsdPerH(prices, node)).toThrow(PricesError);
    expect(() => nodeUsdPerH(prices, node)).toThrow(message);
  });
});

describe("usdPerMillionInferences", () => {
  it("is the hourly price over the hourly inferences", () => {
    expect(usdPerMillionInferences(0.36, 100)).toBeCloseTo(1, 12);
    expect(usdPerMillionInferences(nodeUsdPerH(prices, gpuNode), 2236.6)).toBeCloseTo(0.0907, 4);
  });

  it("doubles with the price and halves with the rate", () => {
    fc.assert(
      fc.property(cost, rate, (usdPerH, ratePerS) => {
        const once = usdPerMillionInferences(usdPerH, ratePerS);
        expect(usdPerMillionInferences(2 * usdPerH, ratePerS)).toBe(2 * once);
        expect(usdPerMillionInferences(usdPerH, 2 * ratePerS) * 2).toBe(once);
      }),
    );
  });

  it.each([
    [1, 0],
    [1, -1],
    [1, NaN],
    [1, Infinity],
    [-1, 1],
    [NaN, 1],
  ])("refuses %d US dollars at %d/s", (usdPerH, ratePerS) => {
    expect(() => usdPerMillionInferences(usdPerH, ratePerS)).toThrow(RangeError);
  });
});

describe("replicasForLoad", () => {
  it.each([
    [0, 100, 1],
    [1, 100, 2],
    [100, 100, 2],
    [100.1, 100, 3],
    [0.9, 0.3, 4],
    [5000, 1250, 5],
  ])("%d/s at %d/s a replica takes %d with one spare", (load, each, replicas) => {
    expect(replicasForLoad(load, each)).toBe(replicas);
    expect(replicasForLoad(load, each, 0)).toBe(replicas - 1);
  });

  it("carries the load with every spare one gone, and not with one fewer", () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e6, noNaN: true }), rate, fc.nat(3), (load, each, spare) => {
        const needed = replicasForLoad(load, each, spare) - spare;
        expect(needed * each).toBeGreaterThanOrEqual(load * (1 - 1e-8) - each * 1e-8);
        if (needed > 0) expect((needed - 1) * each).toBeLessThan(load);
      }),
    );
  });

  it("refuses what is no load, rate or number of spares", () => {
    for (const [load, each, spare] of [
      [-1, 1, 1],
      [1, 0, 1],
      [NaN, 1, 1],
      [1, 1, -1],
      [1, 1, 0.5],
    ] as const)
      expect(() => replicasForLoad(load, each, spare)).toThrow(RangeError);
  });
});

describe("costOfLoad", () => {
  it("is a year of all replicas, the spare one included", () => {
    const {
      replicas,
      usdPerH,
      usdPerYear,
      usdPerMillionInferences: perMillion,
    } = costOfLoad(0.73, 5000, 1250);
    expect([replicas, usdPerH]).toEqual([5, 3.65]);
    expect(usdPerYear).toBeCloseTo(31_974, 6);
    expect(perMillion).toBeCloseTo((3.65 / (3600 * 5000)) * 1e6, 12);
    expect(costOfLoad(0.73, 0, 1250)).toMatchObject({ replicas: 1, usdPerMillionInferences: Infinity });
  });

  it("never makes an inference cheaper than full use of one replica", () => {
    fc.assert(
      fc.property(
        cost,
        fc.double({ min: 1e-3, max: 1e6, noNaN: true }),
        rate,
        fc.nat(3),
        (usd, load, each, spare) => {
          const best = usdPerMillionInferences(usd, each);
          expect(costOfLoad(usd, load, each, spare).usdPerMillionInferences).toBeGreaterThanOrEqual(
            best * (1 - 1e-8),
          );
        },
      ),
    );
  });
});

describe("stackCost", () => {
  it("lists pools, cluster, bucket and NAT", () => {
    const pools = [
      { name: "gpu", node: gpuNode, nodes: 2 },
      { name: "system", node: { machineType: "e2-standard-4" }, nodes: 1 },
    ];
    const lines = stackCost(prices, { pools, bucketGib: 73, nat: { addresses: 1, gibPerH: 2 } });
    expect(lines.map(({ what }) => what)).toEqual([
      "pool gpu: 2 x n1-standard-8",
      "pool system: 1 x e2-standard-4",
      "GKE cluster fee",
      "bucket: 73 GiB",
      "Cloud NAT",
    ]);
    expect(lines.map(({ usdPerH }) => Number(usdPerH.toFixed(6)))).toEqual([
      1.459996, 0.134023, 0.1, 0.002, 0.0992,
    ]);
  });

  it("caps NAT's price of VMs, takes the region, and costs only the fee when all pools are empty", () => {
    const node = { machineType: "e2-standard-2" };
    const size = { pools: [{ name: "load", node, nodes: 100 }], nat: { addresses: 0, gibPerH: 0 } };
    expect(stackCost(prices, size).at(-1)?.usdPerH).toBe(0.044);
    const tokyo = stackCost(prices, { ...size, region: "asia-northeast1" })[0]?.usdPerH;
    expect(tokyo).toBeCloseTo(100 * nodeUsdPerH(prices, { ...node, region: "asia-northeast1" }), 9);
    const empty = stackCost(prices, { pools: [{ name: "load", node, nodes: 0 }] });
    expect(empty.reduce((sum, { usdPerH }) => sum + usdPerH, 0)).toBeCloseTo(0.1, 12);
    expect(() => stackCost(prices, { pools: [{ name: "load", node, nodes: -1 }] })).toThrow(
      /nodes of pool load is -1/,
    );
  });
});
