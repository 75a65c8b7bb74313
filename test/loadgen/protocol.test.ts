import { describe, expect, it } from "vitest";
import type { LoadProfile } from "../../loadgen/load-profile";
import type { LoadSpec } from "../../loadgen/load-spec";
import { loadControlService, type ControllerMessage, type WorkerMessage } from "../../loadgen/protocol";
import { Tally } from "../../loadgen/tally";

const { Work } = loadControlService();
const workerToController = (message: WorkerMessage): WorkerMessage =>
  Work.requestDeserialize(Work.requestSerialize(message));
const controllerToWorker = (message: ControllerMessage): ControllerMessage =>
  Work.responseDeserialize(Work.responseSerialize(message));

export const spec: LoadSpec = {
  id: "run-1",
  addresses: ["10.0.0.1:8001", "[::1]:8001"],
  modelName: "tftrt_int8",
  inputName: "input",
  outputName: "probabilities",
  inputType: "UINT8",
  imageFolder: "/images",
  knownAnswers: [{ classIndex: 0, label: "tench", score: 0.25 }],
  scoreTolerance: 0.01,
  checkEvery: 0,
  shape: { kind: "poisson", ratePerS: 1100.5 },
  seed: -9007199254740991,
  warmupS: 0,
  measureS: 10,
  sloBoundMs: 100,
  deadlineMs: 2000,
  maxInFlight: 1000,
  connectionsPerAddress: 4,
  transport: "grpc-js",
  timeDilation: 2.5,
};

describe("messages survive the wire", () => {
  const shapes: LoadProfile[] = [
    { kind: "poisson", ratePerS: 0.5 },
    { kind: "constant", ratePerS: 2236.6 },
    { kind: "users", users: 3000, spawnPerS: 5, thinkMinS: 0, thinkMaxS: 1.2 },
    { kind: "ramp", fromPerS: 0, toPerS: 900, overS: 60, arrivals: "poisson" },
    {
      kind: "steps",
      steps: [
        { ratePerS: 100, forS: 10 },
        { ratePerS: 200, forS: 0.5 },
      ],
      arrivals: "constant",
    },
    { kind: "recorded", atS: [0, 0, 0.25, 1e6] },
  ];
  it.each(shapes)("spec with shape $kind, zero values included", (shape) => {
    for (const knownAnswers of [spec.knownAnswers, [], null]) {
      const prepare = {
        runId: "r",
        spec: { ...spec, shape, knownAnswers },
        workerIndex: 0,
        workerCount: 2,
        maxInFlight: 500,
      };
      const message = controllerToWorker({ body: "prepare", prepare });
      expect(message.body === "prepare" && message.prepare).toEqual(prepare);
    }
  });

  it("spec with the model's own input shape", () => {
    const own = { ...spec, inputDims: [3, 299, 299] };
    const prepare = { runId: "r", spec: own, workerIndex: 0, workerCount: 2, maxInFlight: 500 };
    const message = controllerToWorker({ body: "prepare", prepare });
    expect(message.body === "prepare" && message.prepare.spec).toEqual(own);
  });

  it("spec with TLS and a connection for every request", () => {
    const tls = { caPem: "", serverName: "triton.example" };
    const own = { ...spec, newConnectionPerRequest: true, tls };
    const prepare = { runId: "r", spec: own, workerIndex: 0, workerCount: 2, maxInFlight: 500 };
    const message = controllerToWorker({ body: "prepare", prepare });
    expect(message.body === "prepare" && message.prepare.spec).toEqual(own);
  });

  it("an early end and a change of the load; what only the controller needs stays there", () => {
    const stop: ControllerMessage = { body: "stop", stop: { runId: "r", atS: 12.5 } };
    expect(controllerToWorker(stop)).toEqual(stop);
    const watched = { ...spec, stopWhen: { quantile: 0.95, boundMs: 100, windowS: 10, minSamples: 200 } };
    const change: ControllerMessage = { body: "change", change: { runId: "r", atS: 3, spec: watched } };
    expect(controllerToWorker(change)).toEqual({ body: "change", change: { runId: "r", atS: 3, spec } });
  });

  it("a tally, full and empty", () => {
    const tally = new Tally();
    tally.sent(12.4, true);
    tally.shed(3, false);
    const ended = { interval: 7, responseUs: 99_000, serviceUs: 98_000, address: "a:1" };
    tally.ended({ ...ended, ending: "ok", error: undefined });
    tally.ended({ ...ended, ending: "failed", error: { kind: "UNAVAILABLE", message: "größe" } });
    tally.slo.addInFlight(7, 42);
    const delta = {
      runId: "r",
      sequence: 1,
      measured: tally.toMessage(),
      warmup: new Tally().toMessage(),
      sentBytes: 42,
      heartbeat: {
        ...{ runId: "r", inFlight: 3, latenessP99Ms: 0.5, loopDelayP99Ms: 1.5, cpuShare: 0.25 },
        ...{ wireMbPerS: 12.5, rssMb: 80, ratePerS: 99.5, busyWaitShare: 0.125 },
      },
    };
    const message = workerToController({ body: "delta", delta });
    expect(message.body === "delta" && message.delta).toEqual(delta);
    const without = workerToController({ body: "delta", delta: { ...delta, heartbeat: null } });
    expect(without.body === "delta" && without.delta.heartbeat).toBeNull();
    const merged = new Tally();
    if (message.body === "delta") merged.mergeMessage(message.delta.measured);
    expect(merged.toMessage()).toEqual(tally.toMessage());
  });

  it("says which message it is", () => {
    const leaving = { body: "leaving", leaving: { reason: "SIGTERM" } } as const;
    expect(workerToController(leaving)).toEqual(leaving);
    expect(workerToController({ body: "prepared", prepared: { runId: "r" } }).body).toBe("prepared");
    expect(controllerToWorker({ body: "start", start: { runId: "r", inMs: 150.5 } })).toEqual({
      body: "start",
      start: { runId: "r", inMs: 150.5 },
    });
    const health = {
      ...{ loopDelayP99Ms: 1.5, cpuShare: 0.25, wireMbPerS: 12.5, latenessP50Ms: 0.5 },
      ...{ busyWaitShare: 0.125, busyWaitMs: 2.5 },
    };
    const done = { body: "done", done: { runId: "r", lastSequence: 3, planned: 42, health } } as const;
    expect(workerToController(done)).toEqual(done);
    expect(controllerToWorker({ body: "abort", abort: { runId: "r" } }).body).toBe("abort");
  });
});
