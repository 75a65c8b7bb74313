/** Typed messages of proto/loadgen.proto, and the service's definition for grpc-js. Fields are described in the .proto file. */
import { join } from "node:path";
import type { MethodDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { LoadProfile } from "./load-profile";
import type { KnownAnswer, LoadSpec, TlsOptions } from "./load-spec";
import type { TallyMessage } from "./tally";

/** Changes with every change that an older peer would misread. */
export const PROTOCOL_VERSION = 2;

export interface Register {
  readonly name: string;
  readonly instanceId: string;
  readonly protocolVersion: number;
  readonly pid: number;
  readonly cores: number;
}

export interface PrepareFailed {
  readonly runId: string;
  readonly isBadSpec: boolean;
  readonly message: string;
}

export interface Delta {
  readonly runId: string;
  readonly sequence: number;
  readonly measured: TallyMessage;
  readonly warmup: TallyMessage;
  /** Message bytes sent since the last one, warm-up included. */
  readonly sentBytes: number;
  /** Absent between two heartbeats. */
  readonly heartbeat?: Heartbeat | null;
}

export interface Heartbeat {
  readonly runId: string;
  readonly inFlight: number;
  readonly latenessP99Ms: number;
  readonly loopDelayP99Ms: number;
  readonly cpuShare: number;
  readonly wireMbPerS: number;
  readonly rssMb: number;
  /** Requests sent per second since the last heartbeat. */
  readonly ratePerS: number;
  /** CPU seconds per second spent waiting awake for planned sends; not in `cpuShare`. */
  readonly busyWaitShare: number;
}

export interface WindowHealth {
  readonly loopDelayP99Ms: number;
  readonly cpuShare: number;
  readonly wireMbPerS: number;
  /** Median of real minus planned send; 0 when nothing was sent. */
  readonly latenessP50Ms: number;
  /** CPU seconds per second spent waiting awake for planned sends; not in `cpuShare`. */
  readonly busyWaitShare: number;
  /** How long it waits awake for a planned send; 0: it sleeps until it is due. */
  readonly busyWaitMs: number;
}

export interface Done {
  readonly runId: string;
  readonly lastSequence: number;
  readonly planned: number;
  readonly health: WindowHealth;
}

export interface Prepare {
  readonly runId: string;
  readonly spec: LoadSpec;
  readonly workerIndex: number;
  readonly workerCount: number;
  readonly maxInFlight: number;
}

/** From worker to controller. */
export type WorkerMessage =
  | { readonly body: "register"; readonly register: Register }
  | { readonly body: "prepared"; readonly prepared: { readonly runId: string } }
  | { readonly body: "prepareFailed"; readonly prepareFailed: PrepareFailed }
  | { readonly body: "delta"; readonly delta: Delta }
  | { readonly body: "heartbeat"; readonly heartbeat: Heartbeat }
  | { readonly body: "done"; readonly done: Done }
  /** An older controller does not know it: the worker is then lost to it when its stream ends. */
  | { readonly body: "leaving"; readonly leaving: { readonly reason: string } };

/** From controller to worker. */
export type ControllerMessage =
  | { readonly body: "registered"; readonly registered: { readonly epoch: string } }
  | { readonly body: "prepare"; readonly prepare: Prepare }
  | { readonly body: "start"; readonly start: { readonly runId: string; readonly inMs: number } }
  | { readonly body: "abort"; readonly abort: { readonly runId: string } }
  | { readonly body: "stop"; readonly stop: { readonly runId: string; readonly atS: number } }
  | { readonly body: "change"; readonly change: Change };

export interface Change {
  readonly runId: string;
  readonly atS: number;
  /** The spec of the measurement with the new shape; nothing else of it is read. */
  readonly spec: LoadSpec;
}

/** Members of the shape's oneof: the figures without the kind, which is the member's name. */
type WireShapes = {
  readonly [Kind in LoadProfile["kind"]]?: Omit<Extract<LoadProfile, { kind: Kind }>, "kind">;
};

/** LoadSpec as the .proto file has it: the shape is a member of a oneof, null is a flag; what only the controller needs is left out. */
type WireSpec = Omit<
  LoadSpec,
  "shape" | "knownAnswers" | "inputDims" | "stopWhen" | "subject" | "sloQuantile" | "tls"
> & {
  /** Empty: not said. */
  readonly inputDims: readonly number[];
  readonly knownAnswers: readonly KnownAnswer[];
  readonly checkAnswers: boolean;
  readonly tls?: TlsOptions | null;
} & WireShapes;

export function specToWire(spec: LoadSpec): WireSpec {
  const {
    shape,
    knownAnswers,
    inputDims = [],
    stopWhen: _stopWhen,
    subject: _subject,
    sloQuantile: _quantile,
    ...rest
  } = spec;
  const { kind, ...figures } = shape;
  const checkAnswers = knownAnswers !== null;
  return { ...rest, inputDims, knownAnswers: knownAnswers ?? [], checkAnswers, [kind]: figures };
}

const shapeKinds = ["poisson", "constant", "users", "ramp", "steps", "recorded"] as const;

/** @throws Error for a spec without a shape that this version knows */
export function specFromWire(wire: WireSpec): LoadSpec {
  const { poisson, constant, users, ramp, steps, recorded, ...others } = wire;
  const { knownAnswers, checkAnswers, inputDims, tls, newConnectionPerRequest, ...rest } = others;
  const shapes: WireShapes = { poisson, constant, users, ramp, steps, recorded };
  const kind = shapeKinds.find((name) => shapes[name] !== undefined && shapes[name] !== null);
  if (kind === undefined)
    throw new Error("the load spec has no shape that this worker knows: run the controller's version");
  return {
    ...rest,
    ...(inputDims.length > 0 ? { inputDims } : {}),
    ...(tls ? { tls } : {}),
    ...(newConnectionPerRequest ? { newConnectionPerRequest } : {}),
    knownAnswers: checkAnswers ? knownAnswers : null,
    shape: { kind, ...withoutZeroLimit(shapes[kind]!) } as LoadProfile,
  };
}

/** On the wire a limit that was left out is 0. */
function withoutZeroLimit<Figures extends object>(figures: Figures & { maxRatePerS?: number }): object {
  const { maxRatePerS = 0, ...others } = figures;
  return maxRatePerS > 0 ? figures : others;
}

/** The bidirectional method LoadControl.Work. */
export type WorkMethod = MethodDefinition<WorkerMessage, ControllerMessage>;

let loaded: { readonly Work: WorkMethod } | undefined;

/** Definition of loadgen.v1.LoadControl. Reads the file at the first call. */
export function loadControlService(): { readonly Work: WorkMethod } {
  if (loaded === undefined) {
    const folder = join(__dirname, "proto");
    const packages = loadSync("loadgen.proto", {
      includeDirs: [folder],
      longs: Number,
      defaults: true,
      arrays: true,
      oneofs: true,
    });
    const definition = packages["loadgen.v1.LoadControl"] as { Work: WorkMethod } | undefined;
    if (definition === undefined) throw new Error(`${folder} defines no service loadgen.v1.LoadControl`);
    loaded = { Work: withSpecs(definition.Work) };
  }
  return loaded;
}

/** Converts the messages that carry a spec. */
function withSpecs(method: WorkMethod): WorkMethod {
  type WithWireSpec<T> = Omit<T, "spec"> & { readonly spec: WireSpec };
  return {
    ...method,
    responseSerialize: (message) => {
      const wire = <T extends { readonly spec: LoadSpec }>(content: T): WithWireSpec<T> => ({
        ...content,
        spec: specToWire(content.spec),
      });
      if (message.body === "prepare")
        return method.responseSerialize({
          body: "prepare",
          prepare: wire(message.prepare),
        } as unknown as ControllerMessage);
      if (message.body === "change")
        return method.responseSerialize({
          body: "change",
          change: wire(message.change),
        } as unknown as ControllerMessage);
      return method.responseSerialize(message);
    },
    responseDeserialize: (bytes) => {
      const message = method.responseDeserialize(bytes);
      if (message.body === "prepare") {
        const prepare = message.prepare as unknown as WithWireSpec<Prepare>;
        return { body: "prepare", prepare: { ...prepare, spec: specFromWire(prepare.spec) } };
      }
      if (message.body === "change") {
        const change = message.change as unknown as WithWireSpec<Change>;
        return { body: "change", change: { ...change, spec: specFromWire(change.spec) } };
      }
      return message;
    },
  };
}
