import * as pulumi from "@pulumi/pulumi";
import { userError } from "../components/user-error";
import { parseConfig } from "./config";
import { ConfigError } from "./config-error";
import type { StackConfig } from "./derived-config";

/**
 * The configuration of the stack that is being deployed.
 * @throws pulumi.RunError with every problem, so that the engine shows the list and no stack trace
 */
export function readConfig(): StackConfig {
  const prefix = `${pulumi.getProject()}:`;
  const own = Object.entries(pulumi.runtime.allConfig())
    .filter(([key]) => key.startsWith(prefix))
    .map(([key, value]) => [key.slice(prefix.length), value] as const);
  try {
    return parseConfig(Object.fromEntries(own));
  } catch (error) {
    if (error instanceof ConfigError) throw userError(error.message);
    throw error;
  }
}
