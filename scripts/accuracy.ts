/** From the command line to the accuracy check of a sweep, or the reason why there is none. */
import { readFile } from "node:fs/promises";
import { parse } from "yaml";
import { z } from "zod";
import { heldOutFolder } from "../model-repo/repository";
import { TargetError } from "../targets/target-error";
import { defaultLimits, limitsFrom, type LimitsByPrecision } from "../tuning/accuracy/limits";
import type { AccuracySettings } from "../tuning/accuracy/screening";
import type { PreparedTarget } from "./open-target";
import type { ModelRunOptions } from "./model-options";

/** `settings` null: nothing is compared, and `notes` say why if that matters. @throws TargetError */
export async function accuracyOf(
  options: ModelRunOptions,
  { variants, reference, heldOut }: Pick<PreparedTarget, "variants" | "reference" | "heldOut">,
): Promise<{ settings: AccuracySettings | null; notes: string[] }> {
  const conversions = variants.filter(({ artefact }) => artefact.precision !== "original");
  if (!options.accuracy) return { settings: null, notes: ["accuracy was not checked (--no-accuracy)"] };
  if (conversions.length === 0) return { settings: null, notes: [] };
  if (typeof reference === "string")
    return { settings: null, notes: [`accuracy was not checked: ${reference}`] };
  const limits = options.accuracyLimits === null ? defaultLimits : await readLimits(options.accuracyLimits);
  const imageFolder = options.heldOut ?? heldOut ?? heldOutFolder;
  return { settings: { reference, imageFolder, limits }, notes: [] };
}

async function readLimits(file: string): Promise<LimitsByPrecision> {
  try {
    return limitsFrom(parse(await readFile(file, "utf8")));
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : String(error);
    throw new TargetError(
      `--accuracy-limits ${file} cannot be used: ${reason}\nWrite e.g. "int8: { top1Agreement: 0.9 }"; what is left out keeps its default`,
    );
  }
}
