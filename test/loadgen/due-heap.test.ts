import fc from "fast-check";
import { expect, it } from "vitest";
import { DueHeap } from "../../loadgen/due-heap";

it("gives users in the order of (time, user), whatever the order of pushes and pops", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.nat(20), { freq: 3 }), { maxLength: 200 }), (steps) => {
      const heap = new DueHeap();
      let model: { time: number; user: number }[] = [];
      steps.forEach((time, user) => {
        if (time !== null) {
          heap.push(time, user);
          model.push({ time, user });
          model.sort((one, other) => one.time - other.time || one.user - other.user);
        } else if (model.length > 0) {
          expect(heap.earliest).toBe(model[0]!.time);
          expect(heap.pop()).toBe(model[0]!.user);
          model = model.slice(1);
        }
      });
      expect(heap.earliest).toBe(model[0]?.time ?? Infinity);
    }),
  );
});

it("says so when nobody is due", () => {
  expect(() => new DueHeap().pop()).toThrow(/heap is empty/);
});
