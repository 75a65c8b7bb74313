import { didYouMean } from "../model-repo/nearest-name";
import { ConfigError, type ConfigProblem } from "./config-error";
import { configKeys, type ConfigKey, type ConfigValues } from "./config-keys";
import { configRules } from "./config-rules";
import { deriveConfig, type StackConfig } from "./derived-config";
import { KeyValueError } from "./key-types";
import { withModel } from "./served-model";
import { readSourceModel } from "./source-model";
import { readVariants } from "./variants";

/** Configuration as Pulumi hands it over: values as text by key, without the project's prefix. Absent keys take their default. */
export type RawConfig = Readonly<Record<string, string>>;

const keyNames = Object.keys(configKeys) as ConfigKey[];

/** A default as Pulumi would hand it over. */
export function defaultText(key: ConfigKey): string {
  const value: unknown = configKeys[key].default;
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Reads and checks the whole configuration.
 * @throws ConfigError with every problem: unknown keys, wrong values, and settings that do not go together. A rule is left
 * out when a key it looks at has no valid value, so that one mistake is reported once.
 */
export function parseConfig(raw: RawConfig): StackConfig {
  const problems: ConfigProblem[] = Object.keys(raw)
    .filter((key) => !Object.hasOwn(configKeys, key))
    .map((key) => ({
      key,
      message: `is no key of this stack${didYouMean(key, keyNames)} See Pulumi.yaml for all keys`,
    }));
  const broken = new Set<string>();
  const reject = (key: string, message: string) => {
    problems.push({ key, message });
    broken.add(key);
  };
  const entries = keyNames.map((key) => [key, readKey(key, raw[key], reject)] as const);
  const values = Object.fromEntries(entries) as unknown as ConfigValues;
  const variants = readVariants(values, reject);
  const model = readSourceModel(values, reject);
  const config = deriveConfig(values, withModel(variants, model), model);
  for (const rule of configRules) {
    if (rule.keys.some((key) => broken.has(key))) continue;
    const message = rule.problem(config);
    if (message !== null) problems.push({ key: rule.keys[0], message });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function readKey(
  key: ConfigKey,
  value: string | undefined,
  reject: (key: string, message: string) => void,
): unknown {
  const spec = configKeys[key];
  try {
    return spec.read(value ?? defaultText(key));
  } catch (error) {
    if (!(error instanceof KeyValueError)) throw error;
    reject(key, error.message);
    return spec.read(defaultText(key));
  }
}
