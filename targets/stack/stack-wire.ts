/** The wire ceiling of a stack: what the way from its load workers to its first server passes. */
import { KserveClient } from "../../kserve/client";
import type { LoadClient } from "../../loadgen/load-spec";
import type { ModelArtefact } from "../../model-repo/variant";
import { probeWire, type WireFinding } from "../../tuning/wire-probe";
import { LimitedLoad } from "../limited-load";
import { lockStack, type ConnectedStack } from "./connect-stack";

/** @param load the stack's load generator, with its limit of `ratePerS` */
export async function stackWire(
  { outputs, replicas }: ConnectedStack,
  load: LoadClient,
  artefact: ModelArtefact,
  ratePerS: number,
): Promise<WireFinding> {
  const mode = outputs.triton.modelControlMode;
  if (mode !== "explicit")
    return {
      ceilingPerS: null,
      summary: `what the way from the load workers passes is not known: model control is ${mode}`,
    };
  const { address } = replicas[0]!.grpc;
  const client = new KserveClient(address);
  try {
    // The load generator has images of its own.
    return await probeWire({ client, address, load, artefact, imageFolder: "", ratePerS });
  } finally {
    client.close();
  }
}

/** The same outside a sweep: holds the stack's lock meanwhile. @throws TargetError when a sweep runs */
export async function stackWireAlone(
  connected: ConnectedStack,
  artefact: ModelArtefact,
  ratePerS: number,
): Promise<WireFinding> {
  const lock = await lockStack(connected);
  try {
    return await stackWire(connected, new LimitedLoad(connected.load, ratePerS), artefact, ratePerS);
  } finally {
    await lock.release();
  }
}
