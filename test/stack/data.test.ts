/** Tables and small calculations behind the configuration. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_BUSY_WAIT_MS } from "../../loadgen/wake-timer";
import { configKeys } from "../../stack/config-keys";
import { contains, overlaps, parseCidr } from "../../stack/cidr";
import {
  loadSize,
  machineRatePerS,
  requestBytes,
  workerRatePerS,
  workersPerMachine,
} from "../../stack/load-sizing";
import {
  accelerators,
  allocatable,
  machineFamilies,
  machineShape,
  type MachineShape,
} from "../../stack/machines";
import { compareReleases, imageProblem, imageRelease, parseRelease } from "../../stack/versions";
import { acceleratorZones, t4Regions } from "../../stack/zones";

describe("zones", () => {
  it.each(t4Regions)("of %s are zones of that region, without repeats", (region) => {
    const zones = acceleratorZones("nvidia-tesla-t4", region, []);
    expect(zones.length).toBeGreaterThan(0);
    expect(new Set(zones).size).toBe(zones.length);
    for (const zone of zones) expect(zone).toMatch(new RegExp(`^${region}-[a-f]$`));
  });

  it("can be added to, once each, in the region only", () => {
    const further = ["us-central1-f", "us-central1-a", "us-east1-b"];
    expect(acceleratorZones("nvidia-tesla-t4", "us-central1", further)).toEqual([
      "us-central1-a",
      "us-central1-b",
      "us-central1-c",
      "us-central1-f",
    ]);
  });

  it("of another accelerator are only what is given", () => {
    expect(acceleratorZones("nvidia-l4", "us-central1", [])).toEqual([]);
    expect(acceleratorZones("nvidia-l4", "us-central1", ["us-central1-a"])).toEqual(["us-central1-a"]);
  });
});

it("workers may wait awake as long as the load generator lets them", () => {
  expect(configKeys.loadBusyWaitMs.read(String(MAX_BUSY_WAIT_MS))).toBe(MAX_BUSY_WAIT_MS);
  expect(() => configKeys.loadBusyWaitMs.read(String(MAX_BUSY_WAIT_MS + 1))).toThrow(/out of range/);
});

describe("machines", () => {
  it.each<[string, MachineShape | undefined]>([
    ["n1-standard-8", { family: "n1", vcpus: 8, memoryGi: 30, egressGbps: 16 }],
    ["n2-standard-8", { family: "n2", vcpus: 8, memoryGi: 32, egressGbps: 16 }],
    ["n1-highmem-8", { family: "n1", vcpus: 8, memoryGi: 52, egressGbps: 16 }],
    ["n1-standard-7", undefined],
    ["n1-custom-8-1024", undefined],
    ["", undefined],
  ])("%s", (machineType, shape) => {
    expect(machineShape(machineType)).toEqual(shape);
  });

  // cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes gives 7.91 CPU and 26.6 GB for n1-standard-8.
  it("leave the published allocatable resources, less the DaemonSets", () => {
    const { cpu, memoryGi } = allocatable(machineShape("n1-standard-8") as MachineShape);
    expect(cpu).toBeCloseTo(7.91 - 0.8, 5);
    expect(memoryGi).toBeCloseTo(26.46 - 1, 1);
  });

  it("always leave less than they have, and a larger one more", () => {
    for (const family of machineFamilies) {
      const shapes = Array.from({ length: 100 }, (_, vcpus) => machineShape(`${family}-${vcpus}`)).filter(
        (shape) => shape !== undefined,
      );
      const left = shapes.map(allocatable);
      expect(shapes.length).toBeGreaterThan(3);
      shapes.forEach((shape, index) => {
        expect(left[index]?.cpu).toBeLessThan(shape.vcpus);
        expect(left[index]?.memoryGi).toBeLessThan(shape.memoryGi);
        if (index > 0) expect(left[index]?.memoryGi).toBeGreaterThan(left[index - 1]?.memoryGi ?? 0);
      });
    }
  });

  it("of every accelerator are in the table", () => {
    for (const accelerator of Object.values(accelerators)) {
      for (const family of accelerator.machineFamilies) {
        expect(machineFamilies.some((known) => known.startsWith(`${family}-`))).toBe(true);
      }
    }
  });
});

describe("releases and images", () => {
  it.each<[string, boolean]>([
    ["25.02", true],
    ["25.13", false],
    ["25.2", false],
    ["2025.02", false],
    ["", false],
  ])("%s", (text, valid) => {
    expect(parseRelease(text) !== undefined).toBe(valid);
  });

  it("compare by month", () => {
    const order = ["22.08", "23.02", "24.12", "25.01", "25.02"].map((text) => parseRelease(text));
    for (let index = 1; index < order.length; index++) {
      const [before, after] = [order[index - 1], order[index]];
      expect(before && after && compareReleases(before, after)).toBeLessThan(0);
    }
  });

  it.each<[string, boolean]>([
    ["a/b:1.2.3", true],
    ["nvcr.io/nvidia/tritonserver:25.02-py3", true],
    [`a/b@sha256:${"0".repeat(64)}`, true],
    ["a/b", false],
    ["a/b:latest", false],
    ["a/b:stable", false],
    ["host:5000/a/b", false],
    ["a/b@sha256:12", false],
  ])("image %s", (image, exact) => {
    expect(imageProblem(image) === null).toBe(exact);
  });

  it("are found in tags", () => {
    expect(imageRelease("nvcr.io/nvidia/tritonserver:25.02-py3")).toEqual({ year: 25, month: 2 });
    expect(imageRelease(`x:25.02-py3@sha256:${"0".repeat(64)}`)).toEqual({ year: 25, month: 2 });
    expect(imageRelease("x:v1.2")).toBeUndefined();
  });
});

describe("ranges", () => {
  it.each<[string, number | undefined]>([
    ["10.0.0.0/8", 2 ** 24],
    ["0.0.0.0/0", 2 ** 32],
    ["192.168.1.7/32", 1],
    ["10.0.0.1/8", undefined],
    ["10.0.0/8", undefined],
    ["10.0.0.256/32", undefined],
    ["10.0.0.0/33", undefined],
  ])("%s", (text, size) => {
    expect(parseCidr(text)?.size).toBe(size);
  });

  const range = fc.tuple(fc.nat(2 ** 32 - 1), fc.integer({ min: 0, max: 32 })).map(([address, bits]) => {
    const size = 2 ** (32 - bits);
    const first = address - (address % size);
    const bytes = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256);
    return { text: `${bytes.join(".")}/${bits}`, first, size };
  });

  it("are read back as they were written", () => {
    fc.assert(
      fc.property(range, ({ text, first, size }) => {
        expect(parseCidr(text)).toEqual({ first, size });
      }),
    );
  });

  it("of two prefixes overlap exactly when one contains the other", () => {
    fc.assert(
      fc.property(range, range, (a, b) => {
        expect(overlaps(a, b)).toBe(contains(a.text, b.text) || contains(b.text, a.text));
        expect(overlaps(a, b)).toBe(overlaps(b, a));
      }),
    );
  });
});

describe("size of the load generator", () => {
  const shape = machineShape("n2-standard-8") as MachineShape;

  it("counts the documents' bytes", () => {
    expect(requestBytes({ name: "input", type: "FP32", dims: [224, 224, 3], format: "FORMAT_NHWC" })).toBe(
      602_112,
    );
    expect(requestBytes({ name: "input", type: "UINT8", dims: [224, 224, 3], format: "FORMAT_NHWC" })).toBe(
      150_528,
    );
  });

  it("needs two machines for the documents' best rate, because of their egress", () => {
    expect(loadSize(2236.6, 602_112, shape).nodes).toBe(1);
    expect(loadSize(2500, 602_112, shape).nodes).toBe(2);
    expect(loadSize(2500, 150_528, shape).nodes).toBe(1);
  });

  it("is enough in every respect, and never zero", () => {
    const rate = fc.integer({ min: 1, max: 50_000 });
    const bytes = fc.constantFrom(1, 1000, 150_528, 602_112, 5_000_000);
    const machine = fc.constantFrom("n2-standard-4", "n2-standard-8", "c2-standard-16", "e2-standard-4");
    fc.assert(
      fc.property(rate, bytes, machine, (ratePerS, bytesPerRequest, machineType) => {
        const chosen = machineShape(machineType) as MachineShape;
        const { workers, nodes } = loadSize(ratePerS, bytesPerRequest, chosen);
        expect(workers * workerRatePerS(bytesPerRequest)).toBeGreaterThanOrEqual(ratePerS);
        expect(nodes * machineRatePerS(chosen, bytesPerRequest)).toBeGreaterThanOrEqual(ratePerS);
        expect(nodes * workersPerMachine(chosen)).toBeGreaterThanOrEqual(workers);
        expect(Math.min(workers, nodes)).toBeGreaterThanOrEqual(1);
      }),
    );
  });

  it("grows with the rate", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20_000 }), (ratePerS) => {
        const [small, large] = [loadSize(ratePerS, 602_112, shape), loadSize(ratePerS * 2, 602_112, shape)];
        expect(large.workers).toBeGreaterThanOrEqual(small.workers);
        expect(large.nodes).toBeGreaterThanOrEqual(small.nodes);
      }),
    );
  });
});
