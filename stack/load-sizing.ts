import type { TensorSpec } from "../model-repo/variant";
import type { MachineShape } from "./machines";

/** Bytes of one element of a tensor. */
const elementBytes: Readonly<Record<TensorSpec["type"], number>> = { FP32: 4, UINT8: 1 };

/** Bytes of one request's payload: the input tensor of one image. */
export function requestBytes(input: TensorSpec): number {
  return input.dims.reduce((product, dim) => product * dim, elementBytes[input.type]);
}

/** Share of a machine's egress that is planned with; near the limit packets queue and latency is the network's. */
const egressShare = 0.7;

/**
 * Requests a second that one worker process sends without being late, at the payload of the documents (602,112 bytes). A
 * lean HTTP/2 client takes 0.3 to 0.6 ms of CPU for one; a worker is planned for two thirds of one core.
 */
const workerRateAtFullPayload = 1000;
const fullPayloadBytes = 602_112;

/** CPU of a request that does not depend on its bytes, as a share of one at the full payload. */
const fixedCpuShare = 0.25;

/** Whole cores of one worker: one for the sender, which may wait awake (`loadBusyWaitMs`), one for the network's and the runtime's threads. */
export const workerCpu = 2;

export interface LoadSize {
  readonly workers: number;
  readonly nodes: number;
}

/** Requests a second that one worker can send. */
export function workerRatePerS(bytesPerRequest: number): number {
  const cpuShare = fixedCpuShare + (1 - fixedCpuShare) * (bytesPerRequest / fullPayloadBytes);
  return workerRateAtFullPayload / cpuShare;
}

/** Requests a second that the egress of one machine passes. */
export function machineRatePerS(shape: MachineShape, bytesPerRequest: number): number {
  return (shape.egressGbps * 1e9 * egressShare) / (8 * bytesPerRequest);
}

/** Workers of one machine: whole cores, less one for the system. */
export function workersPerMachine(shape: MachineShape): number {
  return Math.floor((shape.vcpus - 1) / workerCpu);
}

/** Workers and machines that reach a rate: as many as CPU, egress and cores ask for. */
export function loadSize(ratePerS: number, bytesPerRequest: number, shape: MachineShape): LoadSize {
  const byEgress = Math.ceil(ratePerS / machineRatePerS(shape, bytesPerRequest));
  const workers = Math.max(Math.ceil(ratePerS / workerRatePerS(bytesPerRequest)), byEgress);
  return { workers, nodes: Math.max(byEgress, Math.ceil(workers / workersPerMachine(shape))) };
}
