import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDocument, type Document } from "yaml";
import type { RawConfig } from "./config";
import type { ConfigKey } from "./config-keys";

/** Prefix of the stack's own keys: the project's name in Pulumi.yaml. */
export const keyPrefix = "triton-slo-stack:";

/** A stack file that is missing, unreadable, or holds what cannot be read here. */
export class StackFileError extends Error {
  override readonly name = "StackFileError";
}

/** Path of a stack's settings file. */
export function stackFile(folder: string, stack: string): string {
  return join(folder, `Pulumi.${stack}.yaml`);
}

function open(folder: string, stack: string): Document {
  const file = stackFile(folder, stack);
  if (!existsSync(file))
    throw new StackFileError(`${file} does not exist; make it with: pulumi stack init ${stack}`);
  const document = parseDocument(readFileSync(file, "utf8"));
  const [problem] = document.errors;
  if (problem !== undefined) throw new StackFileError(`${file} is not YAML: ${problem.message}`);
  return document;
}

/**
 * The stack's own keys in its file, as Pulumi would hand them over. Keys of other prefixes are left out.
 * @throws StackFileError, also for an encrypted value: only Pulumi can read it
 */
export function readStackFile(folder: string, stack: string): RawConfig {
  const content = open(folder, stack).toJS() as { config?: Record<string, unknown> } | null;
  const own = Object.entries(content?.config ?? {}).filter(([key]) => key.startsWith(keyPrefix));
  return Object.fromEntries(
    own.map(([key, value]) => {
      if (typeof value === "object" && value !== null && "secure" in value) {
        throw new StackFileError(
          `${key} is encrypted; none of this stack's keys is a secret, so set it in plain text`,
        );
      }
      return [key.slice(keyPrefix.length), typeof value === "string" ? value : JSON.stringify(value)];
    }),
  );
}

/**
 * Sets one key in a stack's file and keeps everything else, comments included. The file is replaced in one step.
 * @throws StackFileError
 */
export function writeStackKey(folder: string, stack: string, key: ConfigKey, value: unknown): void {
  const document = open(folder, stack);
  const scalar = typeof value === "number" || typeof value === "boolean";
  // Pulumi writes numbers and booleans as text.
  document.setIn(["config", `${keyPrefix}${key}`], scalar ? String(value) : value);
  const file = stackFile(folder, stack);
  writeFileSync(`${file}.new`, document.toString({ lineWidth: 120 }));
  renameSync(`${file}.new`, file);
}
