import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allParts, divide, type Part } from "../../examples/gpu/divide";
import { gridNames, gridVariants } from "../../examples/gpu/grids";

const grids = { grid: gridVariants("grid"), grid20: gridVariants("grid20") };
const anyParts = fc.subarray([...allParts], { minLength: 1 });
const namesOf = (variants: readonly { name: string }[]): string[] => variants.map(({ name }) => name);

describe("measurements divided among GPUs", () => {
  it("every configuration of every grid once, all of one name on one GPU, and what is whole on the first", () =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), anyParts, (gpus, parts: Part[]) => {
        const shares = divide(gpus, parts, grids);
        expect(shares).toHaveLength(gpus);
        const owners = new Map<string, number>();
        for (const [gpu, { variants }] of shares.entries())
          for (const name of [...variants.values()].flatMap(namesOf)) {
            expect(owners.get(name) ?? gpu).toBe(gpu);
            owners.set(name, gpu);
          }
        for (const grid of gridNames) {
          const measured = shares.flatMap(({ variants }) => [
            ...namesOf(variants.get(grid) ?? []),
            ...namesOf(variants.get(`${grid}-2`) ?? []),
          ]);
          expect(measured.sort()).toEqual(parts.includes(grid) ? namesOf(grids[grid]).sort() : []);
        }
        const whole = parts.filter((part) => !part.startsWith("grid"));
        expect(shares[0]!.parts.slice(0, whole.length)).toEqual(whole);
        expect(shares.slice(1).flatMap((share) => share.parts)).not.toEqual(
          expect.arrayContaining([expect.stringMatching(/bare|path|explore/)]),
        );
        expect(divide(gpus, parts, grids)).toEqual(shares);
      }),
    ));

  it("so that they end about together, where there is enough to divide", () => {
    const both = (gpus: number, parts: readonly Part[]): number => {
      const ends = divide(gpus, parts, grids).map(({ durationS }) => durationS);
      return Math.max(...ends) - Math.min(...ends);
    };
    for (const gpus of [2, 3, 4])
      expect(both(gpus, ["explore", "explore20", "grid", "grid20"])).toBeLessThan(120);
  });

  it("with the halves that tell most of both grids before the others", () => {
    const [only] = divide(1, allParts, grids);
    expect(only!.parts).toEqual([...allParts, "grid-2", "grid20-2"]);
    for (const grid of gridNames)
      expect([...only!.variants.get(grid)!, ...only!.variants.get(`${grid}-2`)!]).toEqual(grids[grid]);
  });
});
