/** Changes a stack's configuration: first as a proposal, with its preview, then for good. */
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parseConfig } from "../../stack/config";
import { ConfigError } from "../../stack/config-error";
import { configKeys, type ConfigKey } from "../../stack/config-keys";
import { readStackFile, stackFile, StackFileError, writeStackKey } from "../../stack/stack-file";
import { TargetError } from "../target-error";
import { runPulumi, stackFileName, type PulumiRun } from "./pulumi-cli";

/** New values by key of the stack's configuration, without its prefix. */
export type ConfigChange = Readonly<Record<string, unknown>>;

/** A changed copy of a stack's file. Close it. */
export class ProposedConfig {
  private constructor(
    private readonly stack: string,
    private readonly projectFolder: string,
    private readonly folder: string,
    private readonly textBefore: string,
    /** A line a key that changes: old and new value. Empty when nothing does. */
    readonly differences: readonly string[],
  ) {}

  /**
   * @param projectFolder folder of Pulumi.yaml and the stack's file
   * @throws TargetError for a file that cannot be read, a key that the stack does not have, or values that do not go together
   */
  static make(projectFolder: string, stack: string, change: ConfigChange): ProposedConfig {
    const name = stackFileName(stack);
    const folder = mkdtempSync(join(tmpdir(), "stack-config-"));
    try {
      const before = readStackFile(projectFolder, name);
      copyFileSync(stackFile(projectFolder, name), stackFile(folder, name));
      const textBefore = readFileSync(stackFile(folder, name), "utf8");
      for (const [key, value] of Object.entries(change)) writeStackKey(folder, name, knownKey(key), value);
      const after = readStackFile(folder, name);
      parseConfig(after);
      const differences = Object.keys(change)
        .filter((key) => !isDeepStrictEqual(valueOf(before[key]), valueOf(after[key])))
        .map((key) => `${key}: ${before[key] ?? "(default)"} -> ${after[key]}`);
      return new ProposedConfig(name, projectFolder, folder, textBefore, differences);
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      if (error instanceof ConfigError || error instanceof StackFileError)
        throw new TargetError(`stack ${stack}: ${error.message}`);
      throw error;
    }
  }

  /** What `pulumi up` would do with it; changes nothing. */
  preview(fullStackName: string, onOutput: (text: string) => void): Promise<PulumiRun> {
    const file = stackFile(this.folder, this.stack);
    return runPulumi(
      this.projectFolder,
      ["preview", "--stack", fullStackName, "--config-file", file, "--diff", "--non-interactive"],
      onOutput,
    );
  }

  /** Replaces the stack's file. @throws TargetError when it was changed meanwhile */
  write(): void {
    const file = stackFile(this.projectFolder, this.stack);
    if (readFileSync(file, "utf8") !== this.textBefore)
      throw new TargetError(`${file} was changed meanwhile: nothing was written; run the command again`);
    writeFileSync(`${file}.new`, readFileSync(stackFile(this.folder, this.stack)));
    renameSync(`${file}.new`, file);
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function knownKey(key: string): ConfigKey {
  if (Object.hasOwn(configKeys, key)) return key as ConfigKey;
  throw new TargetError(`${key} is no key of the stack's configuration (see Pulumi.yaml)`);
}

/** Objects are compared by content, whatever the order of their keys. */
function valueOf(text: string | undefined): unknown {
  if (text === undefined || !/^\s*[[{]/.test(text)) return text;
  return JSON.parse(text) as unknown;
}
