import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { asObservation, readObservations } from "../../../examples/gpu/observations";
import { catalogue } from "../../../model-repo/catalogue";
import { hostMsOf } from "../../../serving-model/service-law";
import { capacityPerS } from "../../../serving-model/truth";
import { identify } from "../../../tuning/identify/identify";
import type { Observation } from "../../../tuning/identify/observation";
import recorded from "./fixtures/python-backend.json";

type Name = keyof typeof recorded.settings;
const names = Object.keys(recorded.settings) as Name[];

function observationsOf(name: Name, purposes: readonly string[]): Observation[] {
  return recorded.observations
    .filter(({ variant, purpose }) => variant === name && purposes.includes(purpose))
    .map(({ purpose: _purpose, ...seen }) => ({
      ...seen,
      variant: { ...catalogue[0]!, ...recorded.settings[name], name },
    }));
}

/** The most that was answered, requests/s. */
function mostOf(name: Name): number {
  return Math.max(
    ...observationsOf(name, ["probe", "locate", "confirm"]).map(({ throughputPerS }) => throughputPerS),
  );
}

function fittedTo(name: Name, purposes: readonly string[]) {
  const fitted = identify(observationsOf(name, purposes))!;
  const server = { ...recorded.settings[name], dynamicBatching: true, law: fitted.law };
  return { ...fitted, capacity: capacityPerS(server) };
}

describe("a backend that works on the host between input and output, as recorded on a real GPU", () => {
  it.each(names)("%s: the probes alone predict what the server passes within 15 %", (name) => {
    const { capacity } = fittedTo(name, ["probe"]);
    expect(capacity / mostOf(name)).toBeGreaterThan(0.85);
    expect(capacity / mostOf(name)).toBeLessThan(1.15);
  });

  it.each(names)("%s: with the trials' GPU gauges the host is seen to be the limit", (name) => {
    const { law, capacity, notes } = fittedTo(name, ["probe", "locate", "confirm"]);
    expect(capacity / mostOf(name)).toBeGreaterThan(0.85);
    expect(capacity / mostOf(name)).toBeLessThan(1.15);
    expect(notes.join(" ")).toMatch(/counted as host time/);
    const batch = recorded.settings[name].maxBatchSize;
    expect(hostMsOf(law, batch)).toBeGreaterThan(2 * (law.gpuMsPerBatch + law.gpuMsPerImage * batch));
  });
});

describe("instances that share a GPU without waiting for a batch, as recorded on a real one", () => {
  const seen = readObservations(join(__dirname, "../../../docs/evidence/h200/grids")).map(asObservation);

  it.each([
    [32, 2, 0.47],
    [32, 4, 0.65],
    [64, 6, 0.76],
    [32, 6, 0.77],
    [128, 4, 0.77],
  ])(
    "batch %d, %d instances: a GPU that is %d busy at saturation leaves the limit to the host",
    (size, count, gpuBusy) => {
      const own = seen.filter(
        ({ variant: { maxBatchSize, instanceCount, queueDelayUs } }) =>
          maxBatchSize === size && instanceCount === count && queueDelayUs === 0,
      );
      const { law, notes } = identify(own)!;
      expect(notes.join(" ")).toMatch(/counted as host time/);
      const [{ variant }] = own as [Observation];
      const most = Math.max(...own.map(({ throughputPerS }) => throughputPerS));
      const capacity = capacityPerS({ ...variant, dynamicBatching: true, law });
      expect(capacity / most).toBeGreaterThan(0.85);
      expect(capacity / most).toBeLessThan(1.15);
      // The GPU's own part, as its gauge shows it.
      const batch = variant.maxBatchSize;
      const busy = ((law.gpuMsPerBatch + law.gpuMsPerImage * batch) * most) / batch / 1000;
      expect(busy).toBeGreaterThan(gpuBusy * 0.85);
      expect(busy).toBeLessThan(gpuBusy * 1.25);
    },
  );
});
