/** Stack configuration that serves a variant, as plain data and as commands. Pure. */
import { stringify } from "yaml";
import { namedVariants } from "../../model-repo/catalogue";
import type { ResultVariant } from "../results/result-schema";

/** A value of the stack's configuration. */
export type ConfigValue = string | number | boolean | ConfigObject | readonly number[];
export interface ConfigObject {
  readonly [key: string]: ConfigValue;
}

/** Stack configuration by key, without the project's prefix. */
export type StackSettings = Readonly<Record<string, ConfigValue>>;

/**
 * Value of the stack's key `variant`: the catalogue's name where the catalogue has exactly these settings, else the settings
 * themselves, so that a variant which nobody named before is served too.
 */
export function variantSetting({ name, settings }: ResultVariant): ConfigValue {
  const known = namedVariants.find((entry) => entry.name === name);
  const { artefact, maxBatchSize, instanceCount, queueDelayUs, preferredBatchSizes } = settings;
  const same =
    known?.artefact.name === artefact &&
    known.maxBatchSize === maxBatchSize &&
    known.instanceCount === instanceCount &&
    known.queueDelayUs === queueDelayUs &&
    known.preferredBatchSizes.join() === preferredBatchSizes.join();
  return same ? name : { name, artefact, maxBatchSize, instanceCount, queueDelayUs, preferredBatchSizes };
}

/** The settings as they stand in Pulumi.<stack>.yaml. */
export function stackYaml(project: string, settings: StackSettings): string {
  const config = Object.fromEntries(
    Object.entries(settings).map(([key, value]) => [`${project}:${key}`, value]),
  );
  return stringify({ config }).trimEnd();
}

/** The same as commands for the shell, one a line. */
export function pulumiCommands(settings: StackSettings): string {
  return [...Object.entries(settings).flatMap(([key, value]) => setCommands(key, value)), "pulumi up"].join(
    "\n",
  );
}

function setCommands(path: string, value: ConfigValue): string[] {
  if (Array.isArray(value))
    return (value as readonly number[]).flatMap((item, i) => setCommands(`${path}[${i}]`, item));
  if (typeof value === "object")
    return Object.entries(value as ConfigObject).flatMap(([key, member]) =>
      setCommands(`${path}.${key}`, member),
    );
  const flag = /[.[]/.test(path) ? "--path " : "";
  return [`pulumi config set ${flag}${shellWord(path)} ${shellWord(String(value))}`];
}

/** A word that no shell takes apart. */
function shellWord(text: string): string {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
