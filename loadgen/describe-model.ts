/** What requests a served model takes, asked from the server itself. */
import type { ChannelCredentials } from "@grpc/grpc-js";
import { KserveClient, KserveError } from "../kserve/client";
import { imageShapeOf } from "./image-tensor";
import type { LoadSpec } from "./load-spec";

/** A server or model that cannot be loaded with images; the message says what is in the way. */
export class ModelDescriptionError extends Error {
  override readonly name = "ModelDescriptionError";
}

/** The part of a load spec that the model decides. */
export type ModelRequest = Pick<
  LoadSpec,
  "modelName" | "inputName" | "outputName" | "inputType" | "inputDims"
>;

export interface DescribeModelOptions {
  /** Undefined: the only model that is ready. */
  readonly modelName?: string | undefined;
  /** Shape of an image without the batch, for models that leave it open. */
  readonly inputDims?: readonly number[] | undefined;
  readonly credentials?: ChannelCredentials;
}

/** @throws ModelDescriptionError */
export async function describeModel(
  address: string,
  options: DescribeModelOptions = {},
): Promise<ModelRequest> {
  const client = new KserveClient(address, { credentials: options.credentials });
  try {
    const modelName = options.modelName ?? (await onlyModel(client));
    const { inputs, outputs } = await client.modelMetadata(modelName);
    const [input] = inputs;
    const [output] = outputs;
    const of = `model ${modelName} at ${address}`;
    if (input === undefined || output === undefined || inputs.length > 1)
      throw new ModelDescriptionError(
        `${of} has ${inputs.length} inputs and ${outputs.length} outputs; one image is sent a request, to one input`,
      );
    if (input.datatype !== "FP32" && input.datatype !== "UINT8")
      throw new ModelDescriptionError(`${of} takes ${input.datatype}; images can be sent as FP32 or UINT8`);
    const inputDims = options.inputDims ?? input.shape.slice(1);
    try {
      imageShapeOf(inputDims);
    } catch (error) {
      throw new ModelDescriptionError(
        `${of}: input "${input.name}" with shape [${input.shape.join(", ")}]: ${(error as Error).message}; ` +
          `if the server leaves it open, give --input-dims HEIGHT,WIDTH,3`,
      );
    }
    return {
      modelName,
      inputName: input.name,
      outputName: output.name,
      inputType: input.datatype,
      inputDims,
    };
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    throw new ModelDescriptionError(
      error.status === 14 || error.status === 4
        ? `${address} does not answer as a Triton (${error.details}): give the host and port of its gRPC endpoint, usually port 8001`
        : `${address}: ${error.details}`,
    );
  } finally {
    client.close();
  }
}

/** Names of the models that are ready. @throws ModelDescriptionError */
export async function readyModels(address: string, credentials?: ChannelCredentials): Promise<string[]> {
  const client = new KserveClient(address, { credentials });
  try {
    return await readyNames(client);
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    throw new ModelDescriptionError(`${address} does not answer as a Triton (${error.details})`);
  } finally {
    client.close();
  }
}

async function readyNames(client: KserveClient): Promise<string[]> {
  const models = await client.repositoryIndex({ readyOnly: true });
  return [...new Set(models.filter(({ state }) => state === "READY").map(({ name }) => name))];
}

async function onlyModel(client: KserveClient): Promise<string> {
  const names = await readyNames(client);
  if (names.length === 1) return names[0]!;
  throw new ModelDescriptionError(
    names.length === 0
      ? `${client.address} has no model that is ready: load one, or name one with --model NAME`
      : `${client.address} has several models that are ready: name one of them with --model: ${names.join(", ")}`,
  );
}
