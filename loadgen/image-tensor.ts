/**
 * Image file -> input tensor, as the documents' client does it: RGB, straight resize to height x width (aspect ratio not kept),
 * bilinear, channel values 0..255 without normalisation (the served graph does that), NHWC.
 *
 * Decisions on what image files can hold, the same for every format:
 * - EXIF orientation is applied: the model sees the picture as a person does. The documents' client does not do so.
 * - Transparent pixels are blended on white; hidden colours under them do not show.
 * - CMYK and other colour spaces are converted to sRGB; grey becomes three equal channels; 16 bits become 8.
 * - Shrinking is antialiased and always starts from the full-size image (no shrink-on-load), so JPEG and PNG agree.
 * - Only the first page or frame is read.
 */
import { readdir } from "node:fs/promises";
import { extname, join } from "node:path";
import sharp from "sharp";

/** Element type of the tensor: 4 bytes or 1 byte a channel value. */
export type ImageTensorType = "FP32" | "UINT8";

export interface ImageTensorShape {
  /** Pixels. */
  readonly height: number;
  /** Pixels. */
  readonly width: number;
  /** Order of the values: pixel by pixel, or one plane a colour. Default NHWC. */
  readonly layout?: "NHWC" | "NCHW";
  readonly type: ImageTensorType;
}

/**
 * What kind of image a model's input takes.
 * @param dims shape without the batch: [height, width, 3] or [3, height, width]
 * @throws RangeError naming the shape
 */
export function imageShapeOf(dims: readonly number[]): Required<Omit<ImageTensorShape, "type">> {
  const [first = 0, second = 0, third = 0] = dims;
  if (dims.length === 3 && dims.every((dim) => Number.isSafeInteger(dim) && dim >= 1)) {
    if (third === channels) return { height: first, width: second, layout: "NHWC" };
    if (first === channels) return { height: second, width: third, layout: "NCHW" };
  }
  throw new RangeError(`[${dims.join(", ")}] is no RGB image: use [height, width, 3] or [3, height, width]`);
}

/** Largest accepted image, pixels: a small file can hold a picture of gigabytes. 50 megapixels is more than most cameras. */
export const MAX_IMAGE_PIXELS = 50_000_000;

/** File name endings that count as images, lower case. */
export const imageExtensions: readonly string[] = [
  ".jpg",
  ".jpeg",
  ".png",
  ".webp",
  ".gif",
  ".tif",
  ".tiff",
  ".bmp",
];

const channels = 3;

/** An image or image folder that cannot be used; the message names the file and the reason. */
export class ImageError extends Error {
  override readonly name = "ImageError";
}

// Decoding is done once, before the load, beside other workers: more threads would only fight for the same cores.
sharp.concurrency(1);

/**
 * Image files of a folder, sorted by name (code units, the same on every machine); other files and hidden ones are left out.
 * @throws ImageError if the folder cannot be read or has no image
 */
export async function listImages(folder: string): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    throw new ImageError(`image folder ${folder} cannot be read: ${reasonOf(error)}`);
  }
  const images = names
    .filter((name) => !name.startsWith(".") && imageExtensions.includes(extname(name).toLowerCase()))
    .sort((one, other) => (one < other ? -1 : 1));
  if (images.length === 0)
    throw new ImageError(
      `image folder ${folder} has no image: put at least one file with ending ${imageExtensions.join(", ")} there`,
    );
  return images.map((name) => join(folder, name));
}

/**
 * Decodes one image into a tensor of height x width x 3 (or 3 x height x width), little endian.
 * @throws ImageError naming the file
 */
export async function imageToTensor(file: string, shape: ImageTensorShape): Promise<Buffer> {
  const { height, width, type } = shape;
  let decoded: { data: Buffer; info: sharp.OutputInfo };
  try {
    decoded = await sharp(file, { limitInputPixels: MAX_IMAGE_PIXELS, failOn: "error" })
      .autoOrient()
      .flatten({ background: "white" })
      .toColourspace("srgb")
      .resize(width, height, { fit: "fill", kernel: "linear", fastShrinkOnLoad: false })
      .raw({ depth: "uchar" })
      .toBuffer({ resolveWithObject: true });
  } catch (error) {
    throw new ImageError(`image ${file} cannot be decoded: ${reasonOf(error)}`);
  }
  const { data, info } = decoded;
  if (info.channels !== channels || data.length !== height * width * channels)
    throw new ImageError(
      `image ${file} decoded to ${info.width}x${info.height} with ${info.channels} channels, not ${width}x${height} RGB`,
    );
  const values = shape.layout === "NCHW" ? planes(data) : data;
  if (type === "UINT8") return values;
  const floats = Float32Array.from(values);
  return Buffer.from(floats.buffer);
}

/** From RGBRGB... to R...G...B... */
function planes(pixels: Buffer): Buffer {
  const size = pixels.length / channels;
  const result = Buffer.allocUnsafe(pixels.length);
  for (let i = 0; i < size; i++)
    for (let channel = 0; channel < channels; channel++)
      result[channel * size + i] = pixels[i * channels + channel]!;
  return result;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
