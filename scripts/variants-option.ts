/** The file of --variants-file. */
import { readFile } from "node:fs/promises";
import { TargetError } from "../targets/target-error";
import { parseVariantsFile, type VariantRequest } from "../targets/variants-file";

/** @throws TargetError when it cannot be read; InvalidVariantError with all problems in it */
export async function readVariantsFile(file: string): Promise<VariantRequest[]> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TargetError(`--variants-file ${file} cannot be read: ${reason}`);
  }
  return parseVariantsFile(text, file);
}
