/** `accuracy.json` in a results folder: figures of the accuracy check, so that a continued sweep does not repeat it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Variant } from "../../model-repo/variant";
import { canonicalJson, sha256Hex } from "../results/canonical";
import { writeFileAtomic } from "../results/durable";
import { errorCode, fsError, ResultsError } from "../results/results-error";
import type { AccuracyFigures } from "./compare";
import type { AccuracyStore } from "./gate";

/** Name of the file in the results folder. */
export const accuracyFileName = "accuracy.json";

const figuresSchema = z.object({
  images: z.number().int().positive(),
  top1Agreement: z.number(),
  top5Agreement: z.number(),
  maxDifference: z.number(),
  meanDifference: z.number(),
  afterSoftmax: z.boolean(),
});

const fileSchema = z.object({
  schemaVersion: z.literal(1),
  /** Figures by a hash of all that decides them: variant, reference, server, images. */
  checks: z.record(z.string(), figuresSchema.extend({ variant: z.string(), reference: z.string() })),
});

type Content = z.infer<typeof fileSchema>;

/**
 * Opens the store of a results folder, or a fresh one.
 * @param serverIdentity see `OpenTarget.identity`
 * @throws ResultsError when the file is there and cannot be used
 */
export function openAccuracyStore(folder: string, serverIdentity: string, imagesHash: string): AccuracyStore {
  const path = join(folder, accuracyFileName);
  const content = read(path);
  const keyOf = (variant: Variant, reference: Variant): string =>
    sha256Hex(canonicalJson([plain(variant), plain(reference), serverIdentity, imagesHash]));
  return {
    find: (variant, reference) => {
      const check = content.checks[keyOf(variant, reference)];
      if (check === undefined) return null;
      const { variant: _variant, reference: _reference, ...figures } = check;
      return figures;
    },
    add: (variant, reference, figures: AccuracyFigures) => {
      content.checks[keyOf(variant, reference)] = {
        variant: variant.name,
        reference: reference.name,
        ...figures,
      };
      writeFileAtomic(path, `${JSON.stringify(content, null, 2)}\n`);
    },
  };
}

function plain({ published: _published, ...variant }: Variant): Omit<Variant, "published"> {
  return variant;
}

function read(path: string): Content {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return { schemaVersion: 1, checks: {} };
    throw fsError(error, `read ${path}`);
  }
  try {
    return fileSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new ResultsError(
      "invalid",
      `${path} cannot be used (${String(error)}): remove it, and the check is repeated`,
      {
        cause: error,
      },
    );
  }
}
