import { describe, expect, it } from "vitest";
import { Random } from "../../../serving-model/random";
import { matchMisses, type PooledTrial } from "../../../tuning/search/pooled";

/** Misses fall with the speed and rise with the load, as near a knee at 1000/s; 5 % at speed 0. */
const missesAt = (logSpeed: number, value: number): number =>
  Math.min(1, 0.05 * Math.exp(30 * (Math.log(value / 1000) - logSpeed)));

function trial(value: number, missShare: number): PooledTrial {
  return {
    logValue: Math.log(value),
    planned: 10_000,
    missShare,
    modelMissShare: (logSpeed) => missesAt(logSpeed, value),
  };
}
const start = { logSpeed: 0, logKnee: Math.log(1000), trend: 0 };

describe("matching the misses of several trials", () => {
  it("finds the speed that explains them, with hardly an error when they agree", () => {
    const trials = [990, 1000, 1010].map((value) => trial(value, missesAt(-0.03, value)));
    const matched = matchMisses(trials, start, 0)!;
    expect(matched.logSpeed).toBeCloseTo(-0.03, 3);
    expect(matched.standardError).toBeLessThan(0.001);
  });

  it("heeds the mean of the misses: one bad spell outweighs several good ones", () => {
    // Of four trials three miss nothing; in the mean 10 % are missed.
    const trials = [0, 0, 0, 0.4].map((share) => trial(1000, share));
    expect(matchMisses(trials, start, 0)!.logSpeed).toBeLessThan(-0.02);
  });

  it("has an error that the trials' own scatter shows", () => {
    const random = new Random(3);
    const speedOf = (): { speed: number; error: number } => {
      const trials = Array.from({ length: 8 }, () =>
        trial(1000, missesAt(0.015 * random.nextNormal(), 1000)),
      );
      const matched = matchMisses(trials, start, 0)!;
      return { speed: matched.logSpeed, error: matched.standardError };
    };
    const runs = Array.from({ length: 200 }, speedOf);
    const mean = runs.reduce((sum, { speed }) => sum + speed, 0) / runs.length;
    const actual = Math.sqrt(runs.reduce((sum, { speed }) => sum + (speed - mean) ** 2, 0) / runs.length);
    const claimed = runs.reduce((sum, { error }) => sum + error, 0) / runs.length;
    expect(claimed / actual).toBeGreaterThan(0.7);
    expect(claimed / actual).toBeLessThan(1.4);
  });

  it("is nothing with too few trials, or when no speed explains them", () => {
    expect(matchMisses([trial(1000, 0.05), trial(1000, 0.05)], start, 0)).toBeNull();
    const never = { ...trial(1000, 0.5), modelMissShare: () => 0 };
    expect(matchMisses([never, never, never], start, 0)).toBeNull();
  });
});
