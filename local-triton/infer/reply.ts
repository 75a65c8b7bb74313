import { encodeClassifications, encodeInferResponse, type InferResponseOutput } from "../../kserve/wire";
import type { ModelOutput } from "../executor";
import type { WantedOutput } from "./request-check";

/** What a reply is made of, besides the executor's output. */
export interface ReplyHead {
  readonly modelName: string;
  readonly modelVersion: string;
  /** The request's, echoed. */
  readonly id: string;
  readonly images: number;
  /** Whether the shapes have a batch dimension. */
  readonly batched: boolean;
  readonly outputs: readonly WantedOutput[];
  /** Class names by output. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** Serializes the ModelInferResponse. */
export function encodeReply(head: ReplyHead, output: ModelOutput): Buffer {
  return encodeInferResponse({
    modelName: head.modelName,
    modelVersion: head.modelVersion,
    id: head.id,
    outputs: head.outputs.map((wanted) => encodeOutput(head, wanted, output)),
  });
}

function encodeOutput(
  head: ReplyHead,
  { rule, classes }: WantedOutput,
  output: ModelOutput,
): InferResponseOutput {
  const batch = head.batched ? [head.images] : [];
  if (classes === null) {
    const dims = head.batched ? rule.shape.slice(1) : rule.shape;
    return { name: rule.name, datatype: rule.datatype, shape: [...batch, ...dims], raw: output.raw() };
  }
  const labels = head.labels.get(rule.name);
  const entries = [];
  for (let image = 0; image < head.images; image++) {
    for (const { classIndex, score } of output.top(image, classes)) {
      entries.push({ score, classIndex, label: labels?.[classIndex] ?? null });
    }
  }
  const shape = [...batch, entries.length / head.images];
  return { name: rule.name, datatype: "BYTES", shape, raw: encodeClassifications(entries) };
}
