/**
 * Runs a Pulumi program against an in-process engine stub and records every registration with all its options.
 *
 * ```ts
 * const first = await runStack({ programDir, mode: "up", config });
 * const second = await runStack({ programDir, mode: "up", config: changed, prior: first.recording });
 * expect(summary(diff(first.recording, second.recording))).toEqual([...]);
 * ```
 */
import type { PulumiFn } from "@pulumi/pulumi/automation";
import { runInline, runInNodeHost, type HostResult, type HostRun } from "./hosts";
import { Monitor, type MonitorOptions } from "./monitor";
import type { Recording } from "./recording";
import { readProject, type StackConfigValues } from "./stack-config";

export { compare, diff, summary, changedPaths, type Step } from "./compare";
export { ProgramTimeout, runningHosts } from "./hosts";
export * from "./property-value";
export { input, providerUrn, Recording, type Registration } from "./recording";
export { stackConfig, type ConfigValue, type StackConfigValues } from "./stack-config";

export interface StackRun extends Partial<
  Pick<MonitorOptions, "prior" | "previewAnswers" | "invokes" | "outputs" | "failOn">
> {
  /** Folder with Pulumi.yaml. */
  readonly programDir: string;
  readonly mode: "preview" | "up";
  readonly config: StackConfigValues;
  /** Default: dev. */
  readonly stack?: string;
  /** Runs this function inside the test process; without it Pulumi's Node host runs the folder in a child process. */
  readonly program?: PulumiFn;
  /** Longest time from the program's first call to its end. Default: 60. */
  readonly timeoutS?: number;
}

export interface StackRunResult extends HostResult {
  readonly recording: Recording;
}

/**
 * One run, whatever its end: a program that fails gives its exit code, message and log.
 *
 * @throws ProgramTimeout when the program does not end in time
 */
export async function tryStack(run: StackRun): Promise<StackRunResult> {
  const project = readProject(run.programDir);
  const stack = run.stack ?? "dev";
  const { monitor, address } = await Monitor.start({ ...run, project: project.name, stack });
  const host: HostRun = {
    address,
    organization: "organization",
    project: project.name,
    stack,
    preview: run.mode === "preview",
    config: run.config.values,
    secretKeys: run.config.secretKeys,
    started: monitor.started,
    timeoutS: run.timeoutS ?? 60,
    progress: () => monitor.progress(),
  };
  try {
    const ended =
      run.program === undefined
        ? runInNodeHost(host, run.programDir, project.main ?? ".")
        : runInline(host, run.program);
    const result = await Promise.race([ended, monitor.broken]);
    // The real engine fails the update when a resource fails; the program itself may end without an error.
    return { ...result, error: monitor.failure ?? result.error, recording: monitor.recording };
  } finally {
    monitor.stop();
  }
}

/**
 * One run that must succeed.
 *
 * @throws with the program's own messages when it fails
 */
export async function runStack(run: StackRun): Promise<Recording> {
  const { error, output, recording } = await tryStack(run);
  if (error !== undefined)
    throw new Error([error, ...recording.complaints, output].filter((part) => part !== "").join("\n"));
  return recording;
}
