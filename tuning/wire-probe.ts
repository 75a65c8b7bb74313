/**
 * How many requests a second the way from the load generator to a server passes: load on a model that does nothing, at the bytes of the
 * real one. Below that rate a limit is the server's; at it, the wire's.
 */
import type { LoadClient, LoadSpec } from "../loadgen/load-spec";
import type { KserveClient } from "../kserve/client";
import type { ModelArtefact } from "../model-repo/variant";
import { noOpConfig, noOpModelName, noOpOnnx, noOpOutput } from "./no-op-model";

export interface WireProbe {
  readonly client: KserveClient;
  /** Address of the same server as the load generator is told it. */
  readonly address: string;
  readonly load: LoadClient;
  readonly artefact: ModelArtefact;
  readonly imageFolder: string;
  /** Rate to try, requests per second: more than may be offered is of no interest. */
  readonly ratePerS: number;
}

export interface WireFinding {
  /** Ceiling, requests per second; null: none up to the rate that was tried, or not known. */
  readonly ceilingPerS: number | null;
  /** In a sentence. */
  readonly summary: string;
}

const WARMUP_S = 1;
const MEASURE_S = 3;
/** A queue of so many milliseconds is kept in flight: deep enough for the way never to be idle. */
const QUEUE_MS = 400;
const DEADLINE_MS = 4000;
/** What is answered up to this share of what was offered is not the wire's fault. */
const all = 0.97;

/** Loads the model for a moment, beside what is served; the server needs ONNX Runtime and explicit model control. Never rejects. */
export async function probeWire(probe: WireProbe): Promise<WireFinding> {
  const { client, artefact, ratePerS } = probe;
  const { input } = artefact;
  try {
    await client.repositoryLoad(noOpModelName, noOpConfig(input), {
      files: { "1/model.onnx": noOpOnnx(input) },
    });
  } catch (error) {
    return unknown(`a model that does nothing could not be loaded: ${messageOf(error)}`);
  }
  try {
    const { valid, invalidReasons, total } = await probe.load.run(specOf(probe));
    if (!valid) return unknown(invalidReasons.join("; "));
    const answered = total.ok + total.late - total.shed;
    // Of what was planned: in a few seconds chance makes that more or less than the rate says.
    if (answered >= all * total.planned)
      return {
        ceilingPerS: null,
        summary: `the way from the load workers passes all of ${ratePerS.toFixed(0)} requests/s of ${kilobytes(input)} kB`,
      };
    const ceilingPerS = answered / MEASURE_S;
    return {
      ceilingPerS,
      summary: `the way from the load workers passes ${ceilingPerS.toFixed(0)} requests/s of ${kilobytes(input)} kB, whatever the model`,
    };
  } catch (error) {
    return unknown(messageOf(error));
  } finally {
    await client.repositoryUnload(noOpModelName).catch(() => undefined);
  }
}

function specOf({ address, artefact, imageFolder, ratePerS }: WireProbe): LoadSpec {
  const { input } = artefact;
  return {
    id: `wire-${Date.now().toString(36)}`,
    addresses: [address],
    modelName: noOpModelName,
    inputName: input.name,
    outputName: noOpOutput(input).name,
    inputType: input.type,
    inputDims: input.dims,
    imageFolder,
    knownAnswers: null,
    scoreTolerance: 0,
    checkEvery: 0,
    shape: { kind: "poisson", ratePerS },
    seed: 1,
    warmupS: WARMUP_S,
    measureS: MEASURE_S,
    sloBoundMs: QUEUE_MS,
    deadlineMs: DEADLINE_MS,
    maxInFlight: Math.max(64, Math.ceil((ratePerS * QUEUE_MS) / 1000)),
    connectionsPerAddress: 4,
    transport: "lean",
    timeDilation: 1,
  };
}

function kilobytes({ dims, type }: ModelArtefact["input"]): number {
  const bytes = dims.reduce((product, dim) => product * dim, type === "FP32" ? 4 : 1);
  return Math.round(bytes / 1000);
}

function unknown(reason: string): WireFinding {
  return { ceilingPerS: null, summary: `what the way from the load workers passes is not known: ${reason}` };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
