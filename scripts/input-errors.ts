/** Errors whose message says what the user can put right; everything else is the program's own fault. */
import { UnknownNameError } from "../model-repo/catalogue";
import { OnnxModelsError } from "../model-repo/onnx-models";
import { ImageError } from "../loadgen/image-tensor";
import { InvalidVariantError } from "../model-repo/validate-variant";
import { PricesError } from "../pricing/prices";
import { TargetError } from "../targets/target-error";
import { ResultsError } from "../tuning/results/results-error";

const kinds = [
  ...[ResultsError, ImageError, TargetError, InvalidVariantError, PricesError],
  ...[UnknownNameError, OnnxModelsError],
] as const;

export function isInputError(error: unknown): error is Error {
  return kinds.some((kind) => error instanceof kind);
}
