/**
 * Speed of the virtual-time simulation: requests a second on one core, open loop and closed loop, for a one-instance variant and
 * a four-instance one near their SLO rates. Run: npx tsx bench/simulate.ts [seconds per case, default 2]
 */
import { simulate, type SimulatedServer } from "../serving-model/simulate";
import type { SimulatedShape } from "../serving-model/arrival-source";

const secondsPerCase = Number(process.argv[2] ?? 2);
const law = { hostMsPerImage: 0.55, ingressRequestsPerS: 2300 };
const common = { queueDelayUs: 20_000, dynamicBatching: true };
const servers: Record<string, SimulatedServer> = {
  "batch 64 x 1, int8": {
    ...common,
    maxBatchSize: 64,
    preferredBatchSizes: [64],
    instanceCount: 1,
    law: { ...law, gpuMsPerBatch: 1, gpuMsPerImage: 0.27 },
  },
  "batch 16 x 4, int8": {
    ...common,
    maxBatchSize: 16,
    preferredBatchSizes: [16],
    instanceCount: 4,
    law: { ...law, gpuMsPerBatch: 1, gpuMsPerImage: 0.27 },
  },
  "batch 8 x 4, fp16": {
    ...common,
    maxBatchSize: 8,
    preferredBatchSizes: [8],
    instanceCount: 4,
    law: { ...law, gpuMsPerBatch: 3.5, gpuMsPerImage: 0.33 },
  },
};
const shapes: Record<string, (ratePerS: number) => SimulatedShape> = {
  poisson: (ratePerS) => ({ kind: "poisson", ratePerS }),
  constant: (ratePerS) => ({ kind: "constant", ratePerS }),
  users: (ratePerS) => ({
    kind: "users",
    users: Math.round(ratePerS * 1.05),
    spawnPerS: ratePerS,
    thinkMinS: 0.8,
    thinkMaxS: 1.2,
  }),
};
const rates: Record<string, number> = {
  "batch 64 x 1, int8": 1150,
  "batch 16 x 4, int8": 2200,
  "batch 8 x 4, fp16": 1250,
};

for (const [name, server] of Object.entries(servers)) {
  for (const [kind, shapeAt] of Object.entries(shapes)) {
    const shape = shapeAt(rates[name]!);
    simulate(server, { shape, seed: 1, warmupS: 5, measureS: 30, sloBoundMs: 100 });
    let requests = 0;
    const start = process.hrtime.bigint();
    let elapsedS = 0;
    for (let seed = 2; elapsedS < secondsPerCase; seed++) {
      requests +=
        simulate(server, { shape, seed, warmupS: 5, measureS: 60, sloBoundMs: 100, intervalS: 1 }).planned *
        (65 / 60);
      elapsedS = Number(process.hrtime.bigint() - start) / 1e9;
    }
    console.log(
      `${name.padEnd(20)} ${kind.padEnd(9)} ${(requests / elapsedS / 1e6).toFixed(2)} M requests/s`,
    );
  }
}
