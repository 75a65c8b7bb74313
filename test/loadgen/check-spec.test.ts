import { describe, expect, it } from "vitest";
import { checkLoadSpec, LoadSpecError } from "../../loadgen/check-spec";
import { splitHostPort } from "../../loadgen/host-port";
import type { LoadSpec } from "../../loadgen/load-spec";
import { loadSpec } from "./support/spec";

function problems(change: Partial<LoadSpec>): readonly string[] {
  try {
    checkLoadSpec(loadSpec({ addresses: ["a:1"], imageFolder: "/images", ...change }));
  } catch (error) {
    if (error instanceof LoadSpecError) return error.problems;
    throw error;
  }
  return [];
}

describe("checkLoadSpec", () => {
  it("accepts a good one", () => {
    expect(problems({})).toEqual([]);
    expect(
      problems({ warmupS: 0, checkEvery: 0, addresses: ["10.0.0.1:8001", "[::1]:8001", "triton.svc:80"] }),
    ).toEqual([]);
  });

  it.each<[Partial<LoadSpec>, string]>([
    [{ id: "" }, "id must not be empty"],
    [{ addresses: [] }, "addresses must name at least one host:port"],
    [{ addresses: ["host"] }, 'addresses: "host" is no host:port; write e.g. 127.0.0.1:8001 or [::1]:8001'],
    [{ addresses: ["a:1", "a:1"] }, "addresses must not repeat one another: results are counted per address"],
    [{ measureS: NaN }, "measureS must be above 0 s, got NaN"],
    [{ warmupS: -1 }, "warmupS must be 0 or more seconds, got -1"],
    [{ deadlineMs: 500 }, "deadlineMs must be at least sloBoundMs (1000), got 500"],
    [
      { deadlineMs: 2e9, timeDilation: 2 },
      "deadlineMs times timeDilation must be at most 2147483647 ms, got 4000000000",
    ],
    [
      { measureS: 1e12 },
      "warmupS plus measureS, times timeDilation, must be at most 2147483.647 s, got 1000000000000.1",
    ],
    [
      { maxInFlight: 1e10, shape: { kind: "users", users: 1e9, spawnPerS: 1, thinkMinS: 1, thinkMaxS: 1 } },
      "shape.users must be at most 1000000, got 1000000000",
    ],
    [
      { maxInFlight: 1e12, shape: { kind: "poisson", ratePerS: 1e9 } },
      "shape.ratePerS must be at most 10000000 requests/s, got 1000000000",
    ],
    [{ timeDilation: 0.9 }, "timeDilation must be 1 or more, got 0.9"],
    [{ connectionsPerAddress: 0 }, "connectionsPerAddress must be a whole number >= 1, got 0"],
    [{ seed: 0.5 }, "seed must be a whole number, got 0.5"],
    [{ shape: { kind: "poisson", ratePerS: 0 } }, "shape.ratePerS must be above 0 requests/s, got 0"],
    [
      { maxInFlight: 10 },
      "maxInFlight of 10 would shed requests that the SLO allows: 250/s within 1000 ms needs at least 250",
    ],
    [
      { maxInFlight: 9, shape: { kind: "users", users: 10, spawnPerS: 1, thinkMinS: 0, thinkMaxS: 0 } },
      "maxInFlight of 9 would shed requests of 10 users: allow at least one a user",
    ],
    [
      { shape: { kind: "users", users: 10, spawnPerS: 1, thinkMinS: 2, thinkMaxS: 1 } },
      "shape.thinkMinS and thinkMaxS must be 0 <= min <= max, got 2 and 1",
    ],
  ])("%o", (change, problem) => {
    expect(problems(change)).toEqual([problem]);
  });

  it("says everything at once", () => {
    expect(problems({ id: "", measureS: 0, maxInFlight: 0.5 }).length).toBeGreaterThanOrEqual(3);
  });
});

describe("splitHostPort", () => {
  it("splits names, addresses and bracketed IPv6", () => {
    expect(splitHostPort("triton.svc:8001")).toEqual({ host: "triton.svc", port: 8001 });
    expect(splitHostPort("[fe80::1]:65535")).toEqual({ host: "fe80::1", port: 65535 });
  });

  it.each(["", "a", "a:", ":1", "a:0", "a:65536", "a:1:2", "::1:80", "http://a:1", "a b:1", "[a:1"])(
    "refuses %j",
    (text) => {
      expect(() => splitHostPort(text)).toThrow(/is no host:port/);
    },
  );
});
