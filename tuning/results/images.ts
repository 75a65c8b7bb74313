/** Identity of the payload images: what was sent is part of what was measured. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { canonicalJson, sha256Hex } from "./canonical";
import { fsError, ResultsError } from "./results-error";

export interface ImageFact {
  /** File name without its folder. */
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Hashes the images in the given order (the order in which they become payloads).
 * @throws ResultsError when the list is empty or a file cannot be read
 */
export function describeImages(paths: readonly string[]): readonly ImageFact[] {
  if (paths.length === 0)
    throw new ResultsError(
      "invalid",
      "there is no image to send: put a JPEG or PNG file into the --images folder",
    );
  return paths.map((path) => {
    try {
      const content = readFileSync(path);
      return { file: basename(path), bytes: content.length, sha256: sha256Hex(content) };
    } catch (error) {
      throw fsError(error, `read the image ${path}`);
    }
  });
}

/** One hash for all images: of their hashes in payload order. File names do not count, since they are not sent. */
export function hashOfImages(images: readonly ImageFact[]): string {
  return sha256Hex(canonicalJson(images.map((image) => image.sha256)));
}
