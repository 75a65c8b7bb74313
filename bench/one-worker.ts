/** One real worker process with a controller in this process and a sink in a third one: what a load worker costs by itself. */
import { spawn, type ChildProcess } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Controller } from "../loadgen/controller";
import type { LoadProgress, LoadResult, LoadSpec } from "../loadgen/load-spec";
import { imageFolder, loadSpec } from "../test/loadgen/support/spec";

const token = "bench";
const START_TIMEOUT_MS = 30_000;

/** Requests of the documents' images, and small ones. Bytes of the tensor are height x width x 3 (UINT8) or four times that (FP32). */
export const sizes = {
  small: { inputType: "UINT8", inputDims: [8, 8, 3] },
  image: { inputType: "FP32", inputDims: [224, 224, 3] },
} as const satisfies Record<string, Pick<LoadSpec, "inputType" | "inputDims">>;

export interface Memory extends NodeJS.MemoryUsage {
  readonly peakRss: number;
}

/** What the sink does after the warm-up: answer, read without answering, or not even read. */
export type SinkKind = "answers" | "silent" | "deaf";

export interface OneWorker {
  run(change: Partial<LoadSpec>, onProgress?: (progress: LoadProgress) => void): Promise<LoadResult>;
  /** Ends the measurement of this id in a moment. */
  stop(id: string): void;
  /** The worker's memory after a collection; the peak is that of the process so far. */
  memory(): Promise<Memory>;
  /** Percentile 99 of what the worker's own turns delayed its event loop since the last call, milliseconds of CPU time. */
  ownDelayP99Ms(): Promise<number>;
  close(): Promise<void>;
}

async function startOneWorker(sinkKind: SinkKind): Promise<OneWorker> {
  const processes: ChildProcess[] = [];
  const tsx = ["--import", "tsx"];
  const sinkArgs = sinkKind === "answers" ? [] : [sinkKind];
  const sink = spawn(process.execPath, [...tsx, join(__dirname, "raw-sink.ts"), ...sinkArgs], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  processes.push(sink);
  const port = await new Promise<string>((resolve) =>
    sink.stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())),
  );
  const controller = await Controller.listen({ token });
  const worker = spawn(
    process.execPath,
    [
      ...["--expose-gc", "--require", join(__dirname, "worker-probe.cjs"), ...tsx],
      join(__dirname, "../loadgen/worker-main.ts"),
      ...["--controller", `127.0.0.1:${controller.port}`, "--name", "bench"],
    ],
    { stdio: ["ignore", "ignore", "inherit", "ipc"], env: { ...process.env, LOADGEN_TOKEN: token } },
  );
  processes.push(worker);
  await controller.waitForWorkers(1, START_TIMEOUT_MS);
  const images = await imageFolder(1);
  return {
    run: (change, onProgress) =>
      controller.run(
        loadSpec({
          ...{ addresses: [`127.0.0.1:${port}`], imageFolder: images, connectionsPerAddress: 4 },
          ...{ sloBoundMs: 100, deadlineMs: 5000, checkEvery: 0, ...change },
        }),
        onProgress,
      ),
    stop: (id) => void controller.stop(id, "enough"),
    memory: () => ask<Memory>(worker, "memory"),
    ownDelayP99Ms: () => ask<number>(worker, "ownDelayP99Ms"),
    close: async () => {
      for (const child of processes) child.kill("SIGKILL");
      await controller.close();
      await rm(images, { recursive: true, force: true });
    },
  };
}

function ask<Answer>(worker: ChildProcess, question: string): Promise<Answer> {
  return new Promise((resolve) => {
    worker.once("message", (answer) => resolve(answer as Answer));
    worker.send(question);
  });
}

/** So many requests in flight at any time, for `seconds`. */
export function flatOut(inFlight: number, seconds: number): Partial<LoadSpec> {
  return {
    shape: { kind: "users", users: inFlight, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 },
    maxInFlight: inFlight,
    measureS: seconds,
  };
}

/** Runs a bench on one worker, ends the worker, and then this process: with 1 and the reason where it failed. */
export function benchOneWorker(
  bench: (worker: OneWorker) => Promise<void>,
  sinkKind: SinkKind = "answers",
): void {
  const run = async (): Promise<void> => {
    const worker = await startOneWorker(sinkKind);
    try {
      await bench(worker);
    } finally {
      await worker.close();
    }
  };
  run().then(
    () => process.exit(0),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}
