/** The server that `npm run load` loads: one that runs, or an embedded one of its own. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import { describeModel, type ModelRequest } from "../loadgen/describe-model";
import type { TlsOptions } from "../loadgen/load-spec";
import { plainAddress } from "../loadgen/targets";
import { findVariant } from "../model-repo/catalogue";
import { writeRepository } from "../model-repo/write-repository";
import { LocalServer } from "../targets/local-server";
import type { LoadOptions } from "./load-options";

export interface OpenLoadTarget {
  readonly addresses: readonly string[];
  readonly request: ModelRequest;
  readonly timeDilation: number;
  readonly close: () => Promise<void>;
}

/** Asks a running server what its model takes, or starts one. @throws ModelDescriptionError */
export async function openTarget(
  options: Pick<LoadOptions, "target" | "model" | "inputDims">,
  tls: TlsOptions | undefined,
): Promise<OpenLoadTarget> {
  const { target, model, inputDims } = options;
  if (target.kind === "local") return openLocal(target.variant, target.timeDilation);
  const request = await describeModel(plainAddress(target.addresses[0]!), {
    modelName: model ?? undefined,
    inputDims: inputDims ?? undefined,
    ...(tls === undefined
      ? {}
      : { credentials: credentials.createSsl(tls.caPem === "" ? null : Buffer.from(tls.caPem)) }),
  });
  return { addresses: target.addresses, request, timeDilation: 1, close: async () => undefined };
}

async function openLocal(name: string, timeDilation: number): Promise<OpenLoadTarget> {
  const variant = findVariant(name);
  const folder = await mkdtemp(join(tmpdir(), "triton-slo-load-"));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await writeRepository([variant], folder);
    const server = await LocalServer.start({
      repository: folder,
      modelName: variant.name,
      executor: "simulated-t4",
      timeDilation,
      metricsIntervalMs: 1000,
    });
    const { input, output } = variant.artefact;
    return {
      addresses: [server.grpcAddress],
      request: {
        modelName: variant.name,
        inputName: input.name,
        inputType: input.type,
        inputDims: input.dims,
        outputName: output.name,
      },
      timeDilation,
      close: async () => {
        await server.stop();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
