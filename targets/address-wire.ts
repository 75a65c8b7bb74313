/** The wire ceiling between this machine and a running server: what the way passes, whatever the model. */
import { KserveClient } from "../kserve/client";
import { startLocalCluster } from "../loadgen/local-cluster";
import type { ModelArtefact } from "../model-repo/variant";
import { probeWire, type WireFinding } from "../tuning/wire-probe";
import { LimitedLoad } from "./limited-load";

export interface AddressWire {
  /** host:port of gRPC. */
  readonly address: string;
  /** Model whose requests' bytes are sent. */
  readonly artefact: ModelArtefact;
  readonly imageFolder: string;
  readonly workers: number;
  /** Hard limit on the offered load, requests/s. */
  readonly maxRatePerS: number;
}

/** Loads a model that does nothing beside what is served, for some seconds, and unloads it. */
export async function addressWire(options: AddressWire): Promise<WireFinding> {
  const { address, artefact, imageFolder, workers, maxRatePerS } = options;
  const load = new LimitedLoad(await startLocalCluster({ workers }), maxRatePerS);
  const client = new KserveClient(address);
  try {
    return await probeWire({ client, address, load, artefact, imageFolder, ratePerS: maxRatePerS });
  } finally {
    client.close();
    await load.close();
  }
}
