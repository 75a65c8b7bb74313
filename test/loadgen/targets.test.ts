import { describe, expect, it } from "vitest";
import { checkLimits, limitedShape, noLimits, resolveTargets } from "../../loadgen/targets";
import { loadSpec } from "./support/spec";

const spec = (...addresses: string[]) => loadSpec({ addresses, imageFolder: "/images" });
const names: Record<string, readonly string[]> = {
  triton: ["10.0.0.2", "10.0.0.1"],
  six: ["fd00::1"],
  empty: [],
};
const resolver = async (host: string): Promise<readonly string[]> => {
  const found = names[host];
  if (found === undefined) throw new Error("ENOTFOUND");
  return found;
};

describe("targets", () => {
  it("a name becomes all its addresses, anew for every measurement", async () => {
    expect((await resolveTargets(spec("dns:///triton:8001", "b:1"), noLimits, resolver)).addresses).toEqual([
      "10.0.0.1:8001",
      "10.0.0.2:8001",
      "b:1",
    ]);
    expect((await resolveTargets(spec("dns:///six:8001"), noLimits, resolver)).addresses).toEqual([
      "[fd00::1]:8001",
    ]);
    names["triton"] = ["10.0.0.3"];
    expect((await resolveTargets(spec("dns:///triton:8001"), noLimits, resolver)).addresses).toEqual([
      "10.0.0.3:8001",
    ]);
  });

  it.each(["dns:///nobody:8001", "dns:///empty:8001"])("%s: refused by name", async (target) => {
    await expect(resolveTargets(spec(target), noLimits, resolver)).rejects.toThrow(
      `${target} cannot be resolved`,
    );
  });

  it("only those that the controller was started with, by name or by one of the name's addresses", async () => {
    names["triton"] = ["10.0.0.1"];
    const limits = { ...noLimits, targets: ["dns:///triton:8001", "b:1"] };
    for (const allowed of ["dns:///triton:8001", "10.0.0.1:8001", "b:1"])
      expect((await resolveTargets(spec(allowed), limits, resolver, 0)).addresses).toHaveLength(1);
    for (const other of ["c:1", "10.0.0.9:8001", "10.0.0.1:9", "dns:///six:8001"])
      await expect(resolveTargets(spec(other), limits, resolver, 0)).rejects.toThrow(
        `${other} is none of this controller's targets`,
      );
  });
});

it("a replica that is not yet in DNS is waited for", async () => {
  let asked = 0;
  const slow = async (): Promise<readonly string[]> =>
    ++asked < 2 ? ["10.0.0.1"] : ["10.0.0.1", "10.0.0.7"];
  const limits = { ...noLimits, targets: ["dns:///triton:8001"] };
  const { addresses } = await resolveTargets(spec("10.0.0.7:8001"), limits, slow, 10_000);
  expect(addresses).toEqual(["10.0.0.7:8001"]);
  expect(asked).toBe(2);
});

it("rate and requests in flight have hard limits, whatever the shape", () => {
  const limits = { targets: null, maxRatePerS: 100, maxInFlight: 50 };
  const ok = { shape: { kind: "constant", ratePerS: 100 }, maxInFlight: 50 } as const;
  expect(() => checkLimits(ok, limits)).not.toThrow();
  expect(() => checkLimits({ ...ok, maxInFlight: 51 }, limits)).toThrow(
    /maxInFlight of 51 .* \(--max-in-flight\)/,
  );
  for (const shape of [
    { kind: "poisson", ratePerS: 101 },
    { kind: "ramp", fromPerS: 0, toPerS: 200, overS: 5, arrivals: "poisson" },
    { kind: "steps", steps: [{ ratePerS: 150, forS: 1 }], arrivals: "constant" },
    { kind: "users", users: 100, spawnPerS: 1, thinkMinS: 0.8, thinkMaxS: 1.2 },
    { kind: "recorded", atS: Array.from({ length: 300 }, (_, i) => i / 150) },
  ] as const)
    expect(() => checkLimits({ ...ok, shape }, limits)).toThrow(/would offer .* limit is 100 \(--max-rate\)/);
  // A closed loop that takes what the server gives is held to the limit instead.
  const closed = { kind: "users", users: 16, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 } as const;
  for (const shape of [closed, { ...closed, thinkMaxS: 0.1 }]) {
    expect(() => checkLimits({ ...ok, shape }, limits)).not.toThrow();
    expect(limitedShape(shape, limits)).toEqual({ ...shape, maxRatePerS: 100 });
    expect(limitedShape(shape, noLimits)).toEqual(shape);
  }
  expect(() => checkLimits({ ...ok, shape: { ...closed, maxRatePerS: 101 } }, limits)).toThrow(/--max-rate/);
  expect(limitedShape({ ...closed, maxRatePerS: 20 }, limits)).toEqual({ ...closed, maxRatePerS: 20 });
});
