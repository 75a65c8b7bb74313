import { describe, expect, it } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { startSpending } from "../../scripts/spending";

const variants = ["original", "tftrt_fp16"].map(findVariant);
const price = { usdPerHour: 3.6, usdPerReplicaHour: 1, asOf: "2026-11" };

async function start(maxCostUsd: number, yes = false, explore = 0) {
  const notes: string[] = [];
  const meter = await startSpending(
    { maxCostUsd, effort: "quick", yes, explore },
    { price, variants },
    (text) => notes.push(text),
  );
  return { meter, notes };
}

describe("before a sweep starts", () => {
  it("says what it is expected to take", async () => {
    // (20 + 2 x 52) s at 3.6 dollars an hour
    const { meter, notes } = await start(5);
    expect(notes).toEqual([
      expect.stringMatching(
        /^about 2 min 04 s and \$0\.12 for 2 variants \(\$3\.60 an hour, list prices of 2026-11\); it ends at \$5\.00 \(--max-cost\)$/,
      ),
    ]);
    expect(meter!.usd).toBeLessThan(0.1);
    // With what is looked for beyond them.
    expect((await start(5, false, 3)).notes[0]).toMatch(/^about 4 min 40 s and \$0\.28 for 5 variants/);
  });

  it("asks where that is more than may be spent; where nobody can be asked it needs --yes", async () => {
    await expect(start(0.1)).rejects.toThrow(
      /expected to take about 2 min 04 s and \$0\.12.*cut short at --max-cost 0\.1\. Start it\? Nobody can be asked here: give --yes/,
    );
    expect((await start(0.1, true)).meter!.reasonToStop()).toBeNull();
  });

  it("has nothing to say where nothing is paid for by the hour", async () => {
    const none = { price: null, variants };
    expect(
      await startSpending({ maxCostUsd: 1, effort: "quick", yes: false, explore: 0 }, none, () => undefined),
    ).toBeNull();
  });
});
