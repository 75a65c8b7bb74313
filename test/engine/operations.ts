/** Runs a stack's operations and tells what the engine did, step by step. */
import type { EngineEvent, Stack } from "@pulumi/pulumi/automation";

/** One step of an update: what the engine does to one resource. */
export interface Step {
  /** e.g. `create`, `update`, `replace`, `create-replacement`, `delete-replaced`, `delete` */
  op: string;
  type: string;
  name: string;
  /** Properties that differ, of an update or replacement. */
  diffs: string[];
}

/** The result of an operation that succeeded. */
export interface Done {
  /** Steps that change something, in the order in which they began. */
  steps: Step[];
  /** What the CLI printed. */
  text: string;
}

/** An operation that failed. */
export class OperationFailed extends Error {
  constructor(
    readonly steps: Step[],
    readonly text: string,
  ) {
    super(text);
  }
}

const idle = new Set(["same", "read", "refresh"]);

type Run = (options: {
  onOutput: (text: string) => void;
  onEvent: (event: EngineEvent) => void;
}) => Promise<unknown>;

async function watched(run: Run): Promise<Done> {
  const steps: Step[] = [];
  let text = "";
  const onEvent = (event: EngineEvent): void => {
    // A refresh tells what it found only afterwards.
    const metadata = event.resourcePreEvent?.metadata ?? event.resOutputsEvent?.metadata;
    if (!metadata || idle.has(metadata.op)) return;
    const name = metadata.urn.split("::").slice(3).join("::");
    if (
      steps.some(
        (step) => step.op === String(metadata.op) && step.type === metadata.type && step.name === name,
      )
    )
      return;
    const detailed = Object.keys(metadata.detailedDiff ?? {});
    steps.push({
      op: metadata.op,
      type: metadata.type,
      name,
      diffs: detailed.length > 0 ? detailed : (metadata.diffs ?? []),
    });
  };
  try {
    await run({ onOutput: (part) => (text += part), onEvent });
  } catch (error) {
    throw new OperationFailed(steps, text || String(error));
  }
  return { steps, text };
}

export const preview = (stack: Stack): Promise<Done> => watched((options) => stack.preview(options));
export const up = (stack: Stack): Promise<Done> => watched((options) => stack.up(options));
export const refresh = (stack: Stack): Promise<Done> => watched((options) => stack.refresh(options));
export const destroy = (stack: Stack): Promise<Done> => watched((options) => stack.destroy(options));

/** Runs an operation that has to fail. */
export async function failing(operation: Promise<Done>): Promise<OperationFailed> {
  try {
    await operation;
  } catch (error) {
    if (error instanceof OperationFailed) return error;
    throw error;
  }
  throw new Error("The operation was expected to fail and has succeeded");
}

/** `op name` of each step but those of components and the stack itself, sorted. */
export function summary(done: { steps: Step[] }): string[] {
  return done.steps
    .filter((step) => !step.type.startsWith("triton-slo:") && step.type !== "pulumi:pulumi:Stack")
    .map((step) => `${step.op} ${step.name}`)
    .sort();
}

/** Names of the variants in the stack's repository, the served one first. */
export async function repositoryVariants(stack: Stack): Promise<string[]> {
  const { repositoryVariants: output } = await stack.outputs();
  return (output?.value as { name: string }[]).map(({ name }) => name);
}
