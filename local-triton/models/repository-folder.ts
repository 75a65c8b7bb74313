import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ModelConfig } from "../../model-repo/config-types";
import { parseConfigPbtxt } from "../../model-repo/parse-pbtxt";
import { parseLabels } from "../../model-repo/repository";

/** What the repository holds of one model. */
export interface ModelFiles {
  /** Parsed config.pbtxt. */
  readonly config: ModelConfig;
  /** Newest version: the highest numbered folder. */
  readonly version: string;
  /** Folder of that version's files. */
  readonly versionFolder: string;
  /** Changes when config.pbtxt or the versions change. */
  readonly fingerprint: string;
}

/** The model cannot be read from the repository; the message says why, for the log. */
export class PollError extends Error {}

/** A model repository on disk: a folder per model with config.pbtxt and a numbered folder per version. */
export class RepositoryFolder {
  /** @throws Error when `folder` is no folder */
  constructor(private readonly folder: string) {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found === undefined || !found.isDirectory()) {
      throw new Error(`The model repository ${folder} is no folder; name one with --model-repository.`);
    }
  }

  /** Names of the models, sorted. */
  modelNames(): string[] {
    return readdirSync(this.folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map((entry) => entry.name)
      .sort();
  }

  /** @throws PollError */
  read(modelName: string): ModelFiles {
    if (!this.modelNames().includes(modelName)) throw new PollError(`there is no folder ${modelName}`);
    const folder = join(this.folder, modelName);
    const versions = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && /^[1-9]\d*$/.test(entry.name))
      .map((entry) => Number(entry.name))
      .sort((a, b) => a - b);
    const version = versions.at(-1);
    if (version === undefined) throw new PollError(`${modelName} has no version folder such as 1`);
    const file = join(folder, "config.pbtxt");
    try {
      const text = readFileSync(file, "utf8");
      const config = parseConfigPbtxt(text, file);
      return {
        config,
        version: String(version),
        versionFolder: join(folder, String(version)),
        fingerprint: `${versions.join(",")}\n${text}`,
      };
    } catch (error) {
      throw new PollError(error instanceof Error ? error.message : String(error));
    }
  }

  /**
   * Lines of a label file beside config.pbtxt.
   * @throws PollError
   */
  readLabels(modelName: string, fileName: string): string[] {
    try {
      return parseLabels(readFileSync(join(this.folder, modelName, fileName), "utf8"));
    } catch (error) {
      throw new PollError(`the labels of ${modelName} cannot be read: ${String(error)}`);
    }
  }
}
