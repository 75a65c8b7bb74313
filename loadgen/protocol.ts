/** Typed messages of proto/loadgen.proto, and the service's definition for grpc-js. Fields are described in the .proto file. */
import { join } from "node:path";
import type { MethodDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import type { KnownAnswer, LoadShape, LoadSpec } from "./load-spec";
import type { TallyMessage } from "./tally";

/** Changes with every change that an older peer would misread. */
export const PROTOCOL_VERSION = 1;

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
}

export interface Heartbeat {
  readonly runId: string;
  readonly inFlight: number;
  readonly latenessP99Ms: number;
  readonly loopDelayP99Ms: number;
  readonly cpuShare: number;
  readonly wireMbPerS: number;
  readonly rssMb: number;
}

export interface WindowHealth {
  readonly loopDelayP99Ms: number;
  readonly cpuShare: number;
  readonly wireMbPerS: number;
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
  | { readonly body: "done"; readonly done: Done };

/** From controller to worker. */
export type ControllerMessage =
  | { readonly body: "registered"; readonly registered: { readonly epoch: string } }
  | { readonly body: "prepare"; readonly prepare: Prepare }
  | { readonly body: "start"; readonly start: { readonly runId: string; readonly inMs: number } }
  | { readonly body: "abort"; readonly abort: { readonly runId: string } };

/** LoadSpec as the .proto file has it: the shape is a member of a oneof, null is a flag. */
type WireSpec = Omit<LoadSpec, "shape" | "knownAnswers" | "inputDims"> & {
  /** Empty: not said. */
  readonly inputDims: readonly number[];
  readonly knownAnswers: readonly KnownAnswer[];
  readonly checkAnswers: boolean;
  readonly poisson?: { readonly ratePerS: number };
  readonly constant?: { readonly ratePerS: number };
  readonly users?: Omit<Extract<LoadShape, { kind: "users" }>, "kind">;
};

export function specToWire({ shape, knownAnswers, inputDims = [], ...rest }: LoadSpec): WireSpec {
  const { kind, ...figures } = shape;
  const checkAnswers = knownAnswers !== null;
  return { ...rest, inputDims, knownAnswers: knownAnswers ?? [], checkAnswers, [kind]: figures };
}

/** @throws Error for a spec without a shape that this version knows */
export function specFromWire(wire: WireSpec): LoadSpec {
  const { poisson, constant, users, knownAnswers, checkAnswers, inputDims, ...rest } = wire;
  const dims = inputDims.length > 0 ? { inputDims } : {};
  const common = { ...rest, ...dims, knownAnswers: checkAnswers ? knownAnswers : null };
  if (poisson) return { ...common, shape: { kind: "poisson", ...poisson } };
  if (constant) return { ...common, shape: { kind: "constant", ...constant } };
  if (users) return { ...common, shape: { kind: "users", ...users } };
  throw new Error("the load spec has no shape that this worker knows: run the controller's version");
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

/** Converts the one message that differs on the wire. */
function withSpecs(method: WorkMethod): WorkMethod {
  type WirePrepare = Omit<Prepare, "spec"> & { spec: WireSpec };
  return {
    ...method,
    responseSerialize: (message) => {
      if (message.body !== "prepare") return method.responseSerialize(message);
      const prepare: WirePrepare = { ...message.prepare, spec: specToWire(message.prepare.spec) };
      return method.responseSerialize({ body: "prepare", prepare } as unknown as ControllerMessage);
    },
    responseDeserialize: (bytes) => {
      const message = method.responseDeserialize(bytes);
      if (message.body !== "prepare") return message;
      const wire = message.prepare as unknown as WirePrepare;
      return { body: "prepare", prepare: { ...wire, spec: specFromWire(wire.spec) } };
    },
  };
}
