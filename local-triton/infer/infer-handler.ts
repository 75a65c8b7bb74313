import { GrpcStatusCode } from "../../kserve/status";
import { decodeInferRequest, WireError } from "../../kserve/wire";
import type { ModelOutput } from "../executor";
import { StatusError } from "../grpc/status";
import type { UnaryCall, UnaryHandler } from "../grpc/unary-call";
import type { ModelClock } from "../model-clock";
import type { ModelStore } from "../models/model-store";
import type { PendingRequest } from "../models/served-model";
import { encodeReply, type ReplyHead } from "./reply";
import { checkRequest, requestPrefix } from "./request-check";

/** One request from its check to its answer. */
class PendingInfer implements PendingRequest {
  readonly images: number;

  constructor(
    private readonly call: UnaryCall,
    private readonly head: ReplyHead,
    readonly timeoutUs: number,
    private readonly isReady: () => boolean,
  ) {
    this.images = head.images;
  }

  finished(output: ModelOutput): void {
    // A client that is gone needs no answer, and making one costs time.
    if (this.call.over) return;
    // Triton looks a model up once more when it answers with classes; one that is being unloaded is not found then.
    if (this.head.outputs.some(({ classes }) => classes !== null) && !this.isReady()) {
      const { modelName, modelVersion } = this.head;
      const what = `'${modelName}' version ${modelVersion} is not at ready state`;
      this.call.fail(GrpcStatusCode.UNAVAILABLE, `Request for unknown model: ${what}`);
    } else this.call.respond(encodeReply(this.head, output));
  }

  rejected(reason: "queue-full" | "timeout"): void {
    const message =
      reason === "timeout"
        ? "Request timeout expired"
        : `${requestPrefix(this.head.id)}Exceeds maximum queue size`;
    this.call.fail(GrpcStatusCode.UNAVAILABLE, message);
  }

  failed(reason: string): void {
    if (!this.call.over) this.call.fail(GrpcStatusCode.INTERNAL, reason);
  }
}

/** ModelInfer. */
export function inferHandler(store: ModelStore, clock: ModelClock): UnaryHandler {
  return (message, call) => {
    let request;
    try {
      request = decodeInferRequest(message);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      throw new StatusError(GrpcStatusCode.INTERNAL, `the request is no ModelInferRequest: ${error.message}`);
    }
    const model = store.findForInfer(request.modelName, request.modelVersion, requestPrefix(request.id));
    const { images, input, outputs, timeoutUs } = checkRequest(request, message, model.name, model.io);
    const head: ReplyHead = {
      modelName: model.name,
      modelVersion: model.version,
      id: request.id,
      images,
      batched: model.io.maxBatchSize > 0,
      outputs,
      labels: model.labels,
    };
    const isReady = (): boolean => store.isReady(model.name, model.version);
    const pending = new PendingInfer(call, head, timeoutUs, isReady);
    const submittedUs = clock.nowUs();
    call.onCancelled = () => model.cancel(pending, submittedUs);
    model.submit(pending, input);
  };
}
