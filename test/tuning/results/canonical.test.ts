import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, sha256Hex } from "../../../tuning/results/canonical";

/** The same value with the members of every object in another order. */
function shuffled(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(shuffled);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, shuffled(member)] as const);
  return Object.fromEntries(entries.reverse());
}

describe("canonicalJson", () => {
  it("writes the documented form", () => {
    const value = { b: [1, -0, 1e21, 0.1], a: { z: null, é: "ü\n", Z: true }, gone: undefined };
    expect(canonicalJson(value)).toBe('{"a":{"Z":true,"z":null,"é":"ü\\n"},"b":[1,0,1e+21,0.1]}');
  });

  it("does not depend on the order of members, and reads back to the same value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(canonicalJson(shuffled(value))).toBe(text);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("tells different values apart", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const same = JSON.stringify(shuffled(shuffled(a))) === JSON.stringify(b);
        if (canonicalJson(a) === canonicalJson(b)) expect(JSON.parse(canonicalJson(a))).toEqual(b);
        else expect(same).toBe(false);
      }),
    );
  });

  it.each([
    [{ rate: NaN }, "$.rate is NaN"],
    [{ law: [{ ingress: Infinity }] }, "$.law[0].ingress is Infinity"],
    [[undefined], "$[0] is of type undefined"],
    [new Array(1), "$[0] is of type undefined"],
    [{ at: new Date(0) }, "$.at is not a plain object"],
    [{ n: 1n }, "$.n is of type bigint"],
  ])("names what JSON cannot carry: %s", (value, message) => {
    expect(() => canonicalJson(value)).toThrow(message);
  });
});

it("sha256Hex gives the published test vector", () => {
  expect(sha256Hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
