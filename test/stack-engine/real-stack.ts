/** The project's own program, run inline with the settings of its stack files. */
import { join } from "node:path";
import type { PulumiFn } from "@pulumi/pulumi/automation";
import { require as requireTypeScript } from "tsx/cjs/api";
import { vi } from "vitest";
import { runStack, stackConfig, type ConfigValue, type Recording, type StackRun } from "./harness";

// A run takes about a second of processor time; on a machine that is busy with other suites it takes much longer.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export const programDir = join(__dirname, "../..");

/** The stack files of the project. */
export const STACKS = ["dev", "prod"] as const;
export type StackName = (typeof STACKS)[number];

// As the Node host loads it, so that `export =` and the modules it shares with Pulumi are the same.
const program = requireTypeScript(join(programDir, "index.ts"), __filename) as PulumiFn;

export type Overrides = Readonly<Record<string, ConfigValue | undefined>>;

/** What every stack file leaves open. */
export const PROJECT = "test-project";

/** Configuration of a stack with single keys changed. */
export const configOf = (stack: StackName, overrides: Overrides = {}) =>
  stackConfig(programDir, stack, { project: PROJECT, asleep: false, ...overrides });

/** Settings of a run in Pulumi's own host. */
export const hosted = (stack: StackName, mode: "preview" | "up", overrides: Overrides = {}): StackRun => ({
  programDir,
  stack,
  mode,
  config: configOf(stack, overrides),
});

/** One up inside this process. */
export const up = (
  stack: StackName,
  overrides: Overrides = {},
  more: Partial<StackRun> = {},
): Promise<Recording> => runStack({ ...hosted(stack, "up", overrides), program, ...more });

/** One preview inside this process. */
export const preview = (
  stack: StackName,
  overrides: Overrides = {},
  more: Partial<StackRun> = {},
): Promise<Recording> => runStack({ ...hosted(stack, "preview", overrides), program, ...more });
