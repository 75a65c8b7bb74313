import { expect, it } from "vitest";
import type { LoadClient, LoadSpec } from "../../loadgen/load-spec";
import { LimitedLoad } from "../../targets/limited-load";

const result = { id: "done" } as Awaited<ReturnType<LoadClient["run"]>>;

function limited(maxRatePerS: number): { load: LimitedLoad; ran: LoadSpec[] } {
  const ran: LoadSpec[] = [];
  const client: LoadClient = {
    run: async (spec) => {
      ran.push(spec);
      return result;
    },
    close: async () => undefined,
  };
  return { load: new LimitedLoad(client, maxRatePerS), ran };
}

const spec = (shape: LoadSpec["shape"]) => ({ id: "t", shape }) as LoadSpec;
const users = (count: number, thinkMinS: number): LoadSpec["shape"] => ({
  kind: "users",
  users: count,
  spawnPerS: 10,
  thinkMinS,
  thinkMaxS: 1.2,
});

it("passes on what stays within the limit", async () => {
  const { load, ran } = limited(100);
  expect(await load.run(spec({ kind: "poisson", ratePerS: 100 }))).toBe(result);
  await load.run(spec({ kind: "constant", ratePerS: 0.5 }));
  await load.run(spec(users(80, 0.8)));
  expect(ran).toHaveLength(3);
});

it("gives a fixed number in flight, which has no rate of its own, the limit along", async () => {
  const { load, ran } = limited(100);
  await load.run(spec(users(500, 0)));
  expect(ran.map(({ shape }) => shape)).toEqual([{ ...users(500, 0), maxRatePerS: 100 }]);
});

it("refuses what could offer more, whatever the shape, and says how to allow it", async () => {
  const { load, ran } = limited(100);
  for (const shape of [
    { kind: "poisson", ratePerS: 101 },
    { kind: "constant", ratePerS: 250 },
    users(81, 0.8),
  ] as const)
    await expect(load.run(spec(shape))).rejects.toThrow(
      /would offer \d+ requests\/s, the limit is 100: raise --max-rate/,
    );
  expect(ran).toEqual([]);
});
