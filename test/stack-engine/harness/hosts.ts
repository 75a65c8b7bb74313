/**
 * Two ways to run the program: as `pulumi up` does, in a child process of Pulumi's own Node host, and inside this process
 * through the language server that Pulumi's Automation API uses for inline programs (no start-up cost, for many runs).
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import type { sendUnaryData, ServerUnaryCall } from "@grpc/grpc-js";
import type { PulumiFn } from "@pulumi/pulumi/automation";
import { EngineClient } from "@pulumi/pulumi/proto/engine_grpc_pb";
import { LogSeverity, type LogRequest } from "@pulumi/pulumi/proto/engine_pb";
import { RunRequest, type RunResponse } from "@pulumi/pulumi/proto/language_pb";

const load = createRequire(__filename);

/** Pulumi's server of inline programs; exported but left out of the typings. */
interface InlineLanguageServer {
  run(call: ServerUnaryCall<RunRequest, RunResponse>, callback: sendUnaryData<RunResponse>): Promise<void>;
}
const { LanguageServer } = load("@pulumi/pulumi/automation/server") as {
  LanguageServer: new (program: PulumiFn) => InlineLanguageServer;
};

type SendLog = (this: EngineClient, request: LogRequest, callback: (error: null) => void) => unknown;
// The SDK reports every step as a debug line, each in a call of its own after the one before: a third of an inline run.
const engine = EngineClient.prototype as unknown as { log: SendLog };
const sendLog = engine.log;
engine.log = function (request, callback) {
  if (request.getSeverity() !== LogSeverity.DEBUG) return sendLog.call(this, request, callback);
  queueMicrotask(() => callback(null));
  return undefined;
};

/** One run of a program against a monitor. */
export interface HostRun {
  readonly address: string;
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  readonly preview: boolean;
  /** Full keys (`project:key`) and their values; objects as JSON. */
  readonly config: Readonly<Record<string, string>>;
  readonly secretKeys: readonly string[];
  /** Settles when the program makes its first call. */
  readonly started: Promise<void>;
  /** Longest time from the first call to the end. */
  readonly timeoutS: number;
  /** What has happened so far, for the message of a time-out. */
  readonly progress: () => string;
}

/** How a program ended: `error` is undefined when it succeeded. */
export interface HostResult {
  readonly error: string | undefined;
  readonly exitCode: number;
  /** Both streams of the child, in the order of arrival; empty for inline runs. */
  readonly output: string;
}

/** The program did not end in time. */
export class ProgramTimeout extends Error {}

/** Longest time until a host makes its first call: node, TypeScript and @pulumi/gcp have to be loaded on a busy machine. */
const START_LIMIT_S = 60;

const children = new Set<ChildProcess>();
process.once("exit", () => children.forEach(killGroup));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => {
    children.forEach(killGroup);
    process.kill(process.pid, signal);
  });
}

/** Ids of the host processes that still run. */
export const runningHosts = (): number[] => [...children].flatMap((child) => child.pid ?? []);

/**
 * Runs a program folder (with Pulumi.yaml's `main`, or package.json's) in `@pulumi/pulumi/cmd/run`.
 *
 * @param entryPoint file or folder, relative to `programDir`
 * @throws ProgramTimeout when the program takes longer than `timeoutS`; the child and its children are killed
 */
export async function runInNodeHost(
  run: HostRun,
  programDir: string,
  entryPoint: string,
): Promise<HostResult> {
  const flags = ["--monitor", run.address, "--engine", run.address, "--organization", run.organization];
  flags.push(
    "--project",
    run.project,
    "--stack",
    run.stack,
    "--root-directory",
    programDir,
    "--pwd",
    programDir,
  );
  if (run.preview) flags.push("--dry-run");
  const child = spawn(
    process.execPath,
    [load.resolve("@pulumi/pulumi/cmd/run"), ...flags, "--parallel", "16", entryPoint],
    {
      cwd: programDir,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        ...cleanEnvironment(),
        PULUMI_CONFIG: JSON.stringify(run.config),
        PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(run.secretKeys),
        PULUMI_NODEJS_TYPESCRIPT: "true",
        PULUMI_NODEJS_TRANSPILE_ONLY: "true",
      },
    },
  );
  children.add(child);
  let output = "";
  const keep = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  try {
    const ended = new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
    });
    const exitCode = await withinTime(run, ended, () => output);
    return {
      exitCode,
      output,
      error: exitCode === 0 ? undefined : `the program ended with exit code ${exitCode}`,
    };
  } finally {
    killGroup(child);
    children.delete(child);
  }
}

/**
 * Runs a program function in this process.
 *
 * @throws ProgramTimeout when it takes longer than `timeoutS`; the function itself cannot be stopped
 */
export async function runInline(run: HostRun, program: PulumiFn): Promise<HostResult> {
  const request = new RunRequest();
  request.setProject(run.project);
  request.setStack(run.stack);
  request.setOrganization(run.organization);
  request.setDryrun(run.preview);
  request.setParallel(16);
  request.setMonitorAddress(run.address);
  request.setArgsList([run.address]);
  for (const [key, value] of Object.entries(run.config)) request.getConfigMap().set(key, value);
  request.setConfigsecretkeysList([...run.secretKeys]);
  const ended = new Promise<string | undefined>((resolve, reject) => {
    // The server answers a failure twice, first with the error: only the first answer counts.
    const answer: sendUnaryData<RunResponse> = (failure, response) => {
      resolve(
        failure === null || failure === undefined
          ? response?.getError() || undefined
          : String((failure as Error).message),
      );
    };
    new LanguageServer(program)
      .run({ request } as ServerUnaryCall<RunRequest, RunResponse>, answer)
      .catch(reject);
  });
  // Pulumi takes a stack trace for every promise: most of the time of a run. The Node host shows traces when one is needed.
  const traces = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    const error = await withinTime(run, ended, () => "");
    return { error, exitCode: error === undefined ? 0 : 1, output: "" };
  } finally {
    Error.stackTraceLimit = traces;
  }
}

/** Waits for the end of a run within its two limits: until the first call, and from there to the end. */
async function withinTime<T>(run: HostRun, ended: Promise<T>, output: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  const limit = (seconds: number, what: string, reject: (error: Error) => void): void => {
    clearTimeout(timer);
    timer = setTimeout(
      () =>
        reject(new ProgramTimeout(`The program ${what} within ${seconds} s. ${run.progress()}\n${output()}`)),
      seconds * 1000,
    );
  };
  const late = new Promise<never>((_resolve, reject) => {
    limit(START_LIMIT_S, "did not start", reject);
    void run.started.then(() => over || limit(run.timeoutS, "did not end", reject));
  });
  try {
    return await Promise.race([ended, late]);
  } finally {
    over = true;
    clearTimeout(timer);
  }
}

/** The environment without what would change a program's run: Pulumi's own, Google's and the test runner's variables. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const foreign = /^(PULUMI_|GOOGLE_|CLOUDSDK_|GCLOUD_|KUBECONFIG$|VITEST|NODE_OPTIONS$|TS_NODE)/;
  return Object.fromEntries(Object.entries(process.env).filter(([key]) => !foreign.test(key)));
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
