import { describe, expect, it } from "vitest";
import { runSweep, type SweepEvent, type TrialStore } from "../../tuning/sweep";
import { SearchStopped, type SearchStrategy, type VariantOutcome } from "../../tuning/outcome";
import { TargetGone } from "../../tuning/target";
import type { TrialResult, TrialRunner, TrialSpec } from "../../tuning/trial";
import { makeOutcome, makeTrialResult, makeTrialSpec, makeVariant } from "./make";

/** A store in memory: valid results are found again. */
function memoryStore(): TrialStore & { readonly appended: TrialResult[] } {
  const valid = new Map<string, TrialResult>();
  const appended: TrialResult[] = [];
  const key = (spec: TrialSpec): string => JSON.stringify([spec.variant.name, spec.shape, spec.seed]);
  return {
    appended,
    find: (spec) => valid.get(key(spec)) ?? null,
    append: async (spec, result) => {
      appended.push(result);
      if (result.load.valid) valid.set(key(spec), result);
    },
  };
}

/** Asks for trials at the given rates and reports how many it was fed. */
function* ask(name: string, rates: readonly number[]): SearchStrategy {
  let got = 0;
  for (const ratePerS of rates) {
    const result = yield makeTrialSpec({ variant: makeVariant(name), shape: { kind: "poisson", ratePerS } });
    if (result) got++;
  }
  return { ...makeOutcome(name), note: `${got} results` };
}

function runnerOf(run: (spec: TrialSpec) => TrialResult): TrialRunner & { calls: number } {
  const runner = {
    calls: 0,
    run: async (spec: TrialSpec) => {
      runner.calls++;
      return run(spec);
    },
  };
  return runner;
}

const notes = (outcomes: readonly VariantOutcome[]): (string | null)[] =>
  outcomes.map((outcome) => outcome.note);
const noRecovery = async (): Promise<void> => {};

describe("runSweep", () => {
  it("feeds every strategy and keeps the order of the variants", async () => {
    const runner = runnerOf(() => makeTrialResult());
    const result = await runSweep({
      variants: [makeVariant("a"), makeVariant("b")],
      strategyFor: (variant) => ask(variant.name, [100, 200]),
      runner,
      store: memoryStore(),
      recover: noRecovery,
    });
    expect(result.endedEarly).toBeNull();
    expect(result.outcomes.map((outcome) => outcome.variantName)).toEqual(["a", "b"]);
    expect(notes(result.outcomes)).toEqual(["2 results", "2 results"]);
    expect(runner.calls).toBe(4);
  });

  it("takes finished trials from the store: a second run measures nothing", async () => {
    const store = memoryStore();
    const runner = runnerOf(() => makeTrialResult());
    const options = {
      variants: [makeVariant("a")],
      strategyFor: () => ask("a", [1, 2, 3]),
      runner,
      store,
      recover: noRecovery,
    };
    await runSweep(options);
    const again = await runSweep(options);
    expect(runner.calls).toBe(3);
    expect(notes(again.outcomes)).toEqual(["3 results"]);
  });

  it("repeats an invalid trial, keeps every attempt in the store, and goes on without it after three", async () => {
    const store = memoryStore();
    const events: SweepEvent[] = [];
    const runner = runnerOf((spec) =>
      spec.shape.kind === "poisson" && spec.shape.ratePerS === 2
        ? makeTrialResult({ valid: false })
        : makeTrialResult(),
    );
    const result = await runSweep({
      variants: [makeVariant("a")],
      strategyFor: () => ask("a", [1, 2, 3]),
      runner,
      store,
      recover: noRecovery,
      onEvent: (event) => events.push(event),
    });
    expect(runner.calls).toBe(5);
    expect(store.appended.filter((trial) => !trial.load.valid)).toHaveLength(3);
    expect(notes(result.outcomes)).toEqual(["2 results"]);
    expect(events.filter((event) => event.kind === "trial-failed").map((event) => event.willRetry)).toEqual([
      true,
      true,
      false,
    ]);
  });

  it("recovers between attempts when a trial cannot be run", async () => {
    let dead = true;
    const result = await runSweep({
      variants: [makeVariant("a")],
      strategyFor: () => ask("a", [1]),
      runner: runnerOf(() => {
        if (dead) throw new Error("connection refused");
        return makeTrialResult();
      }),
      store: memoryStore(),
      recover: async (_variant, failure) => {
        expect(failure).toEqual({ measured: false, reason: "connection refused" });
        dead = false;
      },
    });
    expect(notes(result.outcomes)).toEqual(["1 results"]);
  });

  it("ends early with what it has when the target is gone for good, and says why", async () => {
    const result = await runSweep({
      variants: [makeVariant("a"), makeVariant("b")],
      strategyFor: (variant) => ask(variant.name, [1, 2, 3]),
      runner: runnerOf((spec) => {
        if (spec.variant.name === "b") throw new Error("server is gone");
        return makeTrialResult();
      }),
      store: memoryStore(),
      recover: async () => {
        throw new Error("port is taken");
      },
    });
    expect(result.outcomes.map((outcome) => outcome.variantName)).toEqual(["a"]);
    expect(result.endedEarly).toContain("b: no trial could be run any more (server is gone");
  });

  it("ends at once when the target says that it does not come back, with what the search knows", async () => {
    function* knowing(name: string): SearchStrategy {
      try {
        for (let seed = 1; ; seed++) yield makeTrialSpec({ variant: makeVariant(name), seed });
      } catch (error) {
        if (!(error instanceof SearchStopped)) throw error;
      }
      return { ...makeOutcome(name), sloRate: { estimate: 9, low: 8, high: 10, level: 0.95 } };
    }
    let calls = 0;
    const events: SweepEvent[] = [];
    const result = await runSweep({
      variants: [makeVariant("a"), makeVariant("b")],
      strategyFor: ({ name }) => knowing(name),
      runner: runnerOf(() => {
        if (++calls > 1) throw new Error("connection refused");
        return makeTrialResult();
      }),
      store: memoryStore(),
      recover: async (_variant, _failure, { onWaiting }) => {
        onWaiting?.("waiting for it since 5 s");
        throw new TargetGone("nothing listens there any more");
      },
      onEvent: (event) => events.push(event),
    });
    expect(calls).toBe(2);
    expect(result.endedEarly).toBe("a: nothing listens there any more");
    expect(result.outcomes.map(({ variantName }) => variantName)).toEqual(["a"]);
    expect(events.filter(({ kind }) => kind === "waiting")).toMatchObject([
      { variant: { name: "a" }, text: "waiting for it since 5 s" },
    ]);
  });

  it("goes on with the next variant when one cannot be run although the target comes back, but not after two", async () => {
    const sweepOf = (failing: readonly string[]) =>
      runSweep({
        variants: ["a", "b", "c"].map((name) => makeVariant(name)),
        strategyFor: ({ name }) => ask(name, [1, 2, 3]),
        runner: runnerOf(({ variant }) => {
          if (failing.includes(variant.name)) throw new Error("the server died");
          return makeTrialResult();
        }),
        store: memoryStore(),
        recover: noRecovery,
      });
    const one = await sweepOf(["a"]);
    expect(one.endedEarly).toBeNull();
    expect(one.outcomes.map(({ excluded }) => excluded)).toEqual([
      "No trial of it could be run: the server died",
      undefined,
      undefined,
    ]);
    const two = await sweepOf(["a", "b"]);
    expect(two.outcomes.map(({ variantName }) => variantName)).toEqual(["a"]);
    expect(two.endedEarly).toBe("b: no trial could be run any more (the server died)");
  });

  it("does not wait longer for its target than it may go on", async () => {
    let isOver = false;
    const result = await runSweep({
      variants: [makeVariant("a")],
      strategyFor: ({ name }) => ask(name, [1]),
      runner: runnerOf(() => {
        throw new Error("connection refused");
      }),
      store: memoryStore(),
      recover: (_variant, _failure, { signal }) => {
        isOver = true;
        return new Promise((_done, reject) =>
          signal!.addEventListener("abort", () => reject(new Error("no longer"))),
        );
      },
      reasonToStop: () => (isOver ? "the time is over" : null),
    });
    expect(result).toEqual({ outcomes: [], endedEarly: "the time is over" });
  });

  it("does not hide a store that cannot be written behind a retry", async () => {
    const runner = runnerOf(() => makeTrialResult());
    const store: TrialStore = {
      find: () => null,
      append: async () => {
        throw new Error("points.jsonl: no space left on device");
      },
    };
    const sweep = runSweep({
      variants: [makeVariant("a")],
      strategyFor: () => ask("a", [1]),
      runner,
      store,
      recover: noRecovery,
    });
    await expect(sweep).rejects.toThrow("no space left");
    expect(runner.calls).toBe(1);
  });

  it("ends when it may not go on, with what the search that was cut short knows", async () => {
    /** A search that knows a rate after its first trial. */
    function* knowing(name: string): SearchStrategy {
      let got = 0;
      try {
        for (;;) if (yield makeTrialSpec({ variant: makeVariant(name), seed: ++got })) continue;
      } catch (error) {
        if (!(error instanceof SearchStopped)) throw error;
      }
      const sloRate = got > 1 ? { estimate: 9, low: 8, high: 10, level: 0.95 } : null;
      return { ...makeOutcome(name), sloRate };
    }
    const after = async (calls: number) => {
      const runner = runnerOf(() => makeTrialResult());
      const finished: string[] = [];
      const result = await runSweep({
        variants: [makeVariant("a"), makeVariant("b"), makeVariant("c")],
        strategyFor: ({ name }) => (name === "b" ? knowing(name) : ask(name, [1, 2])),
        runner,
        store: memoryStore(),
        recover: noRecovery,
        reasonToStop: () => (runner.calls < calls ? null : "too dear"),
        onEvent: (event) =>
          void (event.kind === "variant-finished" && finished.push(event.outcome.variantName)),
      });
      expect([runner.calls, result.endedEarly]).toEqual([calls, "too dear"]);
      expect(finished).toEqual(result.outcomes.map(({ variantName }) => variantName));
      return result.outcomes.map(({ variantName, note }) => [variantName, note]);
    };
    expect(await after(0)).toEqual([]);
    // A search that does not know how to end early says nothing.
    expect(await after(1)).toEqual([]);
    expect(await after(2)).toEqual([["a", "2 results"]]);
    expect(await after(5)).toEqual([
      ["a", "2 results"],
      ["b", "Its search was cut short: too dear."],
    ]);
  });

  it("stops at an abort and does not log the trial that was interrupted", async () => {
    const abort = new AbortController();
    const store = memoryStore();
    const result = await runSweep({
      variants: [makeVariant("a")],
      strategyFor: () => ask("a", [1, 2]),
      runner: runnerOf((spec) => {
        if (spec.shape.kind === "poisson" && spec.shape.ratePerS === 2) abort.abort();
        return makeTrialResult();
      }),
      store,
      recover: noRecovery,
      signal: abort.signal,
    });
    expect(result.endedEarly).toBe("interrupted");
    expect(store.appended).toHaveLength(1);
  });
});

describe("screening before the first trial", () => {
  const sweepOf = (
    screen: (variant: { name: string }) => Promise<string | null>,
    recover: () => Promise<void> = noRecovery,
    events: SweepEvent[] = [],
  ) => {
    const runner = runnerOf(() => makeTrialResult());
    const result = runSweep({
      variants: ["a", "b", "c"].map((name) => makeVariant(name)),
      strategyFor: (variant) => ask(variant.name, [100]),
      screen,
      runner,
      store: memoryStore(),
      recover,
      onEvent: (event) => events.push(event),
    });
    return { runner, result };
  };

  it("measures no variant that is excluded, and says why", async () => {
    const events: SweepEvent[] = [];
    const { runner, result } = sweepOf(
      async ({ name }) => (name === "b" ? "b is wrong" : null),
      noRecovery,
      events,
    );
    const { outcomes, endedEarly } = await result;
    expect(endedEarly).toBeNull();
    expect(outcomes.map(({ excluded }) => excluded)).toEqual([undefined, "b is wrong", undefined]);
    expect(outcomes[1]).toMatchObject({ variantName: "b", sloRate: null, trials: [], note: "b is wrong" });
    expect(runner.calls).toBe(2);
    expect(events.filter(({ kind }) => kind === "variant-finished")).toHaveLength(3);
  });

  it("tries again when the server does not answer, and excludes the variant when it never does", async () => {
    let recoveries = 0;
    let failures = 1;
    const { result } = sweepOf(
      async ({ name }) => {
        if (name === "b" || failures-- > 0) throw new Error("connection refused");
        return null;
      },
      async () => void recoveries++,
    );
    const { outcomes, endedEarly } = await result;
    expect(endedEarly).toBeNull();
    expect(outcomes.map(({ excluded }) => excluded)).toEqual([
      undefined,
      "b could not be checked: connection refused",
      undefined,
    ]);
    expect(recoveries).toBe(4);
  });

  it("ends the sweep when the server is gone", async () => {
    const { result } = sweepOf(() => Promise.reject(new Error("connection refused")));
    expect(await result).toMatchObject({ endedEarly: "b could not be checked: connection refused" });
  });
});
