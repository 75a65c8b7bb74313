/**
 * Thread of one instance: holds an ONNX Runtime session and runs one batch at a time. onnxruntime-node computes on the thread that calls
 * it, so in the server's own thread an inference would stop the event loop for as long as it takes.
 */
import { getPriority, platform, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { InferenceSession, Tensor } from "onnxruntime-node";
import type { InstanceSettings, RunRequest, SessionTensor, WorkerMessage } from "./messages";

/** Steps of niceness: each gives the others about a quarter more of the CPU. */
const LESS_URGENT = 10;
const LOWEST_PRIORITY = 19;

const settings = workerData as InstanceSettings;
const port = parentPort!;
const { input, output } = settings;

function send(message: WorkerMessage, transfer: ArrayBuffer[] = []): void {
  port.postMessage(message, transfer);
}

function joined(buffers: readonly ArrayBuffer[]): ArrayBuffer {
  const [first] = buffers;
  if (first !== undefined && buffers.length === 1) return first;
  const bytes = new Uint8Array(buffers.reduce((sum, buffer) => sum + buffer.byteLength, 0));
  let offset = 0;
  for (const buffer of buffers) {
    bytes.set(new Uint8Array(buffer), offset);
    offset += buffer.byteLength;
  }
  return bytes.buffer;
}

function tensorOf(requests: readonly ArrayBuffer[], images: number): Tensor {
  const dims = [images, ...input.dims];
  const bytes = joined(requests);
  return input.type === "UINT8"
    ? new Tensor("uint8", new Uint8Array(bytes), dims)
    : new Tensor("float32", new Float32Array(bytes), dims);
}

async function infer(session: InferenceSession, tensor: Tensor, images: number): Promise<Float32Array> {
  const result = (await session.run({ [input.name]: tensor }, [output.name]))[output.name]!;
  const values = images * output.classes;
  if (!(result.data instanceof Float32Array) || result.data.length !== values)
    throw new Error(
      `output '${output.name}' is ${result.type} [${result.dims.join(",")}], not ${values} float32 values for ${images} images`,
    );
  return result.data;
}

async function run(session: InferenceSession, { requests, images }: RunRequest): Promise<void> {
  try {
    const tensor = tensorOf(requests, images);
    const inputEndMs = wallMs();
    const values = await infer(session, tensor, images);
    const inferEndMs = wallMs();
    // The session may use its own memory again.
    const copy = values.slice();
    send({ kind: "done", values: copy, inputEndMs, inferEndMs }, [copy.buffer]);
  } catch (error) {
    send({ kind: "failed", reason: messageOf(error) });
  }
}

async function warmUp(session: InferenceSession): Promise<void> {
  const bytes = input.dims.reduce((product, dim) => product * dim, input.type === "FP32" ? 4 : 1);
  for (const images of settings.warmupBatches)
    await infer(session, tensorOf([new ArrayBuffer(images * bytes)], images), images);
}

/** Comparable with the other threads' of this process. */
function wallMs(): number {
  return performance.timeOrigin + performance.now();
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function described(tensors: readonly InferenceSession.ValueMetadata[]): SessionTensor[] {
  return tensors.map((tensor) =>
    tensor.isTensor
      ? {
          name: tensor.name,
          type: tensor.type,
          shape: tensor.shape.map((dim) => (typeof dim === "number" ? dim : -1)),
        }
      : { name: tensor.name, type: "no tensor", shape: [] },
  );
}

/**
 * Inference takes every core that it gets for as long as it runs. At a lower priority than the server's and the load generator's threads
 * it lets them send and answer in time, as a GPU would. On Linux this is a property of the thread, and its children inherit it.
 */
function yieldToOthers(): void {
  if (platform() === "linux") setPriority(Math.min(LOWEST_PRIORITY, getPriority() + LESS_URGENT));
}

async function main(): Promise<void> {
  yieldToOthers();
  const session = await InferenceSession.create(settings.modelFile, {
    executionProviders: ["cpu"],
    intraOpNumThreads: settings.threads,
    interOpNumThreads: 1,
    executionMode: "sequential",
    graphOptimizationLevel: "all",
    // Threads that spin while they wait would take the cores from the server and the load generator.
    extra: { session: { intra_op: { allow_spinning: "0" } } },
    logSeverityLevel: 3,
  });
  send({
    kind: "loaded",
    inputs: described(session.inputMetadata),
    outputs: described(session.outputMetadata),
  });
  port.on("message", (message: RunRequest | "warm-up") => {
    if (message !== "warm-up") return void run(session, message);
    warmUp(session).then(
      () => send({ kind: "warm" }),
      (error: unknown) => send({ kind: "failed", reason: messageOf(error) }),
    );
  });
}

main().catch((error: unknown) => send({ kind: "failed", reason: messageOf(error) }));
