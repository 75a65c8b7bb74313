import { describe, expect, it } from "vitest";
import { lastChange } from "../../../tuning/search/change";
import { defaultErrorModel, type PlacedFit } from "../../../tuning/search/estimate";

const knee = Math.log(1000);
/** A trial's fit; without a slope it is only an upper limit of the speed. */
function fit(logSpeed: number, slope = 20, value = 1000): PlacedFit {
  return { logValue: Math.log(value), fit: { logSpeed, slope, excess: 0, modelExcess: 0, course: null } };
}
const changeOf = (fits: readonly PlacedFit[]) => lastChange(fits, knee, defaultErrorModel);

describe("a server that changes during the search", () => {
  it("is found where its trials become slower and stay so", () => {
    const change = changeOf([fit(0), fit(0.002), fit(-0.1), fit(-0.101)])!;
    expect(change.from).toBe(2);
    expect(change.logRatio).toBeCloseTo(-0.1, 2);
  });

  it("is believed at once when a trial misses by far, for that is no small disturbance", () => {
    expect(changeOf([fit(0), fit(0.001), fit(-0.1, 0)])?.from).toBe(2);
  });

  it("is not made of one trial that was a little slower, of chance, or of a server that got faster", () => {
    expect(changeOf([fit(0), fit(0.002), fit(-0.05)])).toBeNull();
    expect(changeOf([fit(0.004), fit(-0.004), fit(0.003), fit(-0.006), fit(0)])).toBeNull();
    expect(changeOf([fit(-0.1), fit(-0.1), fit(0), fit(0)])).toBeNull();
  });

  it("is not seen in scatter that was there before", () => {
    expect(changeOf([fit(0.1), fit(-0.12), fit(0.08), fit(-0.1), fit(-0.09)])).toBeNull();
  });

  it("is not seen in trials that differ no more than the seconds of each of them do", () => {
    const wobbling = (wobble: number) =>
      [0, 0.01, -0.1, -0.09].map((speed) => {
        const placed = fit(speed);
        const course = { residuals: wobble ** 2 * 400, sensitivity: 400 };
        return { ...placed, fit: { ...placed.fit, course } };
      });
    expect(changeOf(wobbling(0.001))?.from).toBe(2);
    expect(changeOf(wobbling(0.05))).toBeNull();
  });

  it("is the last one of several", () => {
    const fits = [0, 0, -0.1, -0.1, -0.25, -0.25].map((speed) => fit(speed));
    expect(changeOf(fits)?.from).toBe(4);
  });

  it("is not what a load far from the knee makes of the model's shape", () => {
    expect(changeOf([fit(0), fit(0), fit(-0.1, 20, 3000), fit(-0.1, 20, 3000)])).toBeNull();
  });
});
