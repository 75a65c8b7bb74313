/** Writes a model repository into a folder, for a local server. */
import { copyFile, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { generatedMarker } from "./config-pbtxt";
import type { ModelConfigOptions } from "./model-config";
import { modelVersion, repositoryFiles } from "./repository";
import type { Variant } from "./variant";

export interface WriteRepositoryOptions extends ModelConfigOptions {
  /** Replace files that this program did not write. Default false: they are an error. */
  readonly overwriteForeign?: boolean;
  /** Content of a labels file by name. Default: from model-repo/labels. */
  readonly readLabelsFile?: (file: string) => string;
  /** Absolute path of a variant's model file; it is linked into the version's folder. Default: none, the folder stays empty. */
  readonly modelFileOf?: (variant: Variant) => string;
}

export interface WrittenRepository {
  /** Paths relative to the folder. */
  readonly written: readonly string[];
  /** Already there with just this content. */
  readonly unchanged: readonly string[];
  /** Files not written by this program that were replaced; only with overwriteForeign. */
  readonly replacedForeign: readonly string[];
  /** Other entries of the folder. They were left alone, but Triton's modes none and poll load them as models too. */
  readonly others: readonly string[];
}

/** The folder cannot be used as it is. The message names every path and what to do. */
export class WriteRepositoryError extends Error {
  override readonly name = "WriteRepositoryError";
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** Content of a file, or null when there is none. */
async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw new WriteRepositoryError(
      `${path} cannot be read (${errorCode(error)}): a file is expected there or nothing; move away what is in its place`,
    );
  }
}

/** A reader sees the old file or the new one, never half of it. */
async function writeAtomically(path: string, content: string): Promise<void> {
  const temporary = join(dirname(path), `.${process.pid}.${Date.now()}.tmp`);
  try {
    await writeFile(temporary, content, { flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw new WriteRepositoryError(
      `folder ${path} cannot be made (${errorCode(error)}): choose a folder that you may write to`,
    );
  }
}

/** Several variants share one file of many megabytes. */
async function linkModel(modelFile: string, versionFolder: string): Promise<void> {
  const link = join(versionFolder, basename(modelFile));
  await rm(link, { force: true });
  try {
    await symlink(modelFile, link);
  } catch (error) {
    // Windows lets only some users make links.
    if (errorCode(error) !== "EPERM") throw error;
    await copyFile(modelFile, link);
  }
}

/**
 * Writes `<variant>/config.pbtxt`, labels and an empty `<variant>/1/` for every variant. Nothing is written if a file is in
 * the way that this program did not write; a model's folder is known as its own by the first line of its config.pbtxt.
 * @throws InvalidVariantError, WriteRepositoryError
 */
export async function writeRepository(
  variants: readonly Variant[],
  folder: string,
  options: WriteRepositoryOptions = {},
): Promise<WrittenRepository> {
  const files = repositoryFiles(variants, options, options.readLabelsFile);
  await makeFolder(folder);
  const unchanged: string[] = [];
  const foreign: string[] = [];
  const toWrite: [string, string][] = [];
  for (const [path, content] of files) {
    const present = await readIfThere(join(folder, path));
    if (present === content) {
      unchanged.push(path);
      continue;
    }
    toWrite.push([path, content]);
    const config = await readIfThere(join(folder, dirname(path), "config.pbtxt"));
    if (present !== null && config?.startsWith(generatedMarker) !== true) foreign.push(path);
  }
  if (foreign.length > 0 && options.overwriteForeign !== true)
    throw new WriteRepositoryError(
      `${folder} has files that were not written by this program: ${foreign.join(", ")}. Choose another folder, move them away, or ask for them to be overwritten`,
    );
  for (const variant of variants) {
    const versionFolder = join(folder, variant.name, modelVersion);
    await makeFolder(versionFolder);
    if (options.modelFileOf !== undefined) await linkModel(options.modelFileOf(variant), versionFolder);
  }
  for (const [path, content] of toWrite) await writeAtomically(join(folder, path), content);
  const own = new Set(variants.map(({ name }) => name));
  const others = (await readdir(folder)).filter((entry) => !own.has(entry)).sort();
  return { written: toWrite.map(([path]) => path), unchanged, replacedForeign: foreign, others };
}
