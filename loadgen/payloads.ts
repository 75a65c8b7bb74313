/** Folder of images -> serialized inference requests, made once before the load and only read afterwards. */
import { stat } from "node:fs/promises";
import { encodeInferRequest } from "../kserve/wire";
import { imageShapeOf, imageToTensor, listImages, ImageError, type ImageTensorShape } from "./image-tensor";

/** Most images of a folder: each stays in every worker's memory twice (message, and framed for the wire), 1.2 MB as FP32. */
export const MAX_IMAGES = 128;

/** Input of the documents' model. */
const defaultInputDims: readonly number[] = [224, 224, 3];

/** What a request says beside the image. */
export interface PayloadOptions {
  readonly imageFolder: string;
  readonly modelName: string;
  readonly inputName: string;
  readonly outputName: string;
  readonly inputType: "FP32" | "UINT8";
  /** Without the batch. Default [224, 224, 3]. */
  readonly inputDims?: readonly number[];
}

/** Decodes and serializes images; keeps the tensors of the last folder, because the trials of a sweep differ in the model only. */
export class PayloadSource {
  private key = "";
  private tensors: readonly Buffer[] = [];

  /**
   * One serialized ModelInferRequest an image, in the order of the sorted files. It asks for the top class of the output
   * (classification extension), as the documents' client does.
   * @throws ImageError if the folder is unreadable, empty or too large, or an image in it cannot be decoded
   */
  async load(options: PayloadOptions): Promise<Buffer[]> {
    const { imageFolder, modelName, inputName, outputName, inputType } = options;
    const dims = options.inputDims ?? defaultInputDims;
    const shape: ImageTensorShape = { ...imageShapeOf(dims), type: inputType };
    const tensors = await this.tensorsOf(imageFolder, shape);
    return tensors.map((raw) =>
      encodeInferRequest({
        modelName,
        inputName,
        datatype: inputType,
        shape: [1, ...dims],
        raw,
        outputName,
        classCount: 1,
      }),
    );
  }

  private async tensorsOf(folder: string, shape: ImageTensorShape): Promise<readonly Buffer[]> {
    const files = await listImages(folder);
    if (files.length > MAX_IMAGES)
      throw new ImageError(
        `image folder ${folder} has ${files.length} images; the load generator holds at most ${MAX_IMAGES}: remove some`,
      );
    const key = JSON.stringify([shape, await Promise.all(files.map(fingerprint))]);
    if (key !== this.key) {
      const tensors: Buffer[] = [];
      for (const file of files) tensors.push(await imageToTensor(file, shape));
      this.tensors = tensors;
      this.key = key;
    }
    return this.tensors;
  }
}

/** What changes when a file is replaced. */
async function fingerprint(file: string): Promise<[string, number, number]> {
  const { size, mtimeMs } = await stat(file);
  return [file, size, mtimeMs];
}
