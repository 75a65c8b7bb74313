import { describe, expect, it } from "vitest";
import type { KserveClient } from "../../kserve/client";
import type { LoadClient, LoadSpec } from "../../loadgen/load-spec";
import { noOpModelName } from "../../tuning/no-op-model";
import { probeWire } from "../../tuning/wire-probe";
import { makeTrialResult, makeVariant } from "./make";

/** A server that loads the model, or does not, and a load generator with this result. */
function world(
  total: Partial<ReturnType<typeof makeTrialResult>["load"]["total"]>,
  loads = true,
  valid = true,
) {
  const asked: string[] = [];
  const ran: LoadSpec[] = [];
  const client = {
    repositoryLoad: async (name: string) => {
      asked.push(`load ${name}`);
      if (!loads) throw new Error("no backend onnxruntime");
    },
    repositoryUnload: async (name: string) => void asked.push(`unload ${name}`),
  } as unknown as KserveClient;
  const load: LoadClient = {
    run: async (spec) => {
      ran.push(spec);
      return makeTrialResult({
        valid,
        total: { planned: 3000, ok: 3000, late: 0, failed: 0, shed: 0, ...total },
      }).load;
    },
    close: async () => undefined,
  };
  const { artefact } = makeVariant("a");
  return {
    asked,
    ran,
    find: () => probeWire({ client, address: "a:1", load, artefact, imageFolder: "", ratePerS: 1000 }),
  };
}

describe("the way to the server", () => {
  it("passes all that may be offered: no ceiling is known", async () => {
    const { find, asked, ran } = world({});
    expect(await find()).toEqual({
      ceilingPerS: null,
      summary: "the way from the load workers passes all of 1000 requests/s of 602 kB",
    });
    expect(asked).toEqual([`load ${noOpModelName}`, `unload ${noOpModelName}`]);
    expect(ran[0]).toMatchObject({ modelName: noOpModelName, maxInFlight: 400, knownAnswers: null });
  });

  it("passes less: what was answered in the window", async () => {
    const { find } = world({ ok: 300, late: 2100, shed: 600 });
    expect(await find()).toEqual({
      ceilingPerS: 600,
      summary: "the way from the load workers passes 600 requests/s of 602 kB, whatever the model",
    });
  });

  it("is not known when the model cannot be loaded or the load generator was the limit; nothing stays loaded", async () => {
    const refused = world({}, false);
    expect((await refused.find()).summary).toMatch(
      /is not known: a model that does nothing could not be loaded: no backend/,
    );
    expect(refused.ran).toEqual([]);
    const late = world({}, true, false);
    expect((await late.find()).summary).toMatch(/is not known: lateness p99/);
    expect(late.asked.at(-1)).toBe(`unload ${noOpModelName}`);
  });
});
