/**
 * Variants of models that the catalogue does not know, from a file of the user's (YAML; JSON is a part of it). Pure: text in, requests
 * or all problems out. What a request leaves open is read from the server afterwards (served-variants.ts).
 */
import { LineCounter, parseDocument, type Document } from "yaml";
import { knownNames } from "../model-repo/nearest-name";
import { InvalidVariantError, variantProblems, type Problem } from "../model-repo/validate-variant";
import type { Precision, TensorType, Variant } from "../model-repo/variant";

/** What may be said about a tensor; null: as the server's model has it. */
export interface TensorRequest {
  readonly name: string | null;
  readonly type: TensorType | null;
  /** Without the batch. */
  readonly dims: readonly number[] | null;
}

/** One entry of the file; null: as the server serves the model. */
export interface VariantRequest {
  readonly name: string | null;
  /** Name of the model in Triton's repository. */
  readonly model: string;
  readonly maxBatchSize: number | null;
  readonly instanceCount: number | null;
  readonly queueDelayUs: number | null;
  readonly preferredBatchSizes: readonly number[] | null;
  /** Of the conversion. Null: as the artefact has it; of a server's model `original`, which is compared with nothing. */
  readonly precision: Precision | null;
  readonly input: TensorRequest;
  readonly output: TensorRequest;
}

const keys = [
  ...["name", "model", "maxBatchSize", "instanceCount", "queueDelayUs", "preferredBatchSizes"],
  ...["precision", "input", "output"],
];
const tensorKeys = ["name", "type", "dims"];
const precisions: readonly Precision[] = ["original", "fp32", "fp16", "int8"];
const tensorTypes: readonly TensorType[] = ["FP32", "UINT8"];
const example = "- { model: my_model, maxBatchSize: 8, instanceCount: 2 }";

/**
 * @param file how messages call it
 * @throws InvalidVariantError with all problems at once
 */
export function parseVariantsFile(text: string, file: string): VariantRequest[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw invalid(`${file}:${line}:${col}`, `is no YAML: ${error.message}`);
  }
  const content = contentOf(document, file);
  if (!Array.isArray(content) || content.length === 0)
    throw invalid(file, `is no list of variants; write one entry a variant, e.g. "${example}"`);
  const problems: Problem[] = [];
  const requests = content.map((entry: unknown, index) => readEntry(entry, `${file}[${index}]`, problems));
  const names = requests.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    if (name !== null && names.indexOf(name) < index)
      problems.push({
        path: `${file}[${index}].name`,
        message: `"${name}" is used twice; give each its own`,
      });
  }
  if (problems.length > 0) throw new InvalidVariantError(problems);
  return requests;
}

/** References to anchors are resolved only here. */
function contentOf(document: Document, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw invalid(file, `is no YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function readEntry(entry: unknown, path: string, problems: Problem[]): VariantRequest {
  if (!isObject(entry)) {
    problems.push({ path, message: `is no object; use e.g. "${example}"` });
    return blank;
  }
  complainAboutStrangers(entry, keys, "a variant", path, problems);
  const { model } = entry;
  if (typeof model !== "string" || model === "")
    problems.push({
      path: `${path}.model`,
      message: "is missing; use the model's name in Triton's repository",
    });
  const request: VariantRequest = {
    name: (entry["name"] ?? null) as string | null,
    model: typeof model === "string" ? model : "",
    maxBatchSize: (entry["maxBatchSize"] ?? null) as number | null,
    instanceCount: (entry["instanceCount"] ?? null) as number | null,
    queueDelayUs: (entry["queueDelayUs"] ?? null) as number | null,
    preferredBatchSizes: (entry["preferredBatchSizes"] ?? null) as readonly number[] | null,
    precision: word(entry["precision"], precisions, `${path}.precision`, problems),
    input: readTensor(entry["input"], `${path}.input`, problems),
    output: readTensor(entry["output"], `${path}.output`, problems),
  };
  problems.push(...settingsProblems(request, path));
  return request;
}

const openTensor: TensorRequest = { name: null, type: null, dims: null };
const blank: VariantRequest = {
  name: null,
  model: "",
  maxBatchSize: null,
  instanceCount: null,
  queueDelayUs: null,
  preferredBatchSizes: null,
  precision: null,
  input: openTensor,
  output: openTensor,
};

function readTensor(value: unknown, path: string, problems: Problem[]): TensorRequest {
  if (value === undefined) return openTensor;
  if (!isObject(value)) {
    problems.push({
      path,
      message: `is no object; use e.g. { name: input, type: FP32, dims: [224, 224, 3] }`,
    });
    return openTensor;
  }
  complainAboutStrangers(value, tensorKeys, "a tensor", path, problems);
  const { name, dims } = value;
  if (name !== undefined && (typeof name !== "string" || name === ""))
    problems.push({ path: `${path}.name`, message: "is no text; use the tensor's name in the model" });
  if (dims !== undefined && !isDims(dims))
    problems.push({
      path: `${path}.dims`,
      message: "is no shape; use whole numbers from 1, without the batch",
    });
  return {
    name: typeof name === "string" ? name : null,
    type: word(value["type"], tensorTypes, `${path}.type`, problems),
    dims: isDims(dims) ? dims : null,
  };
}

/** The rules of a variant's settings, for those that are given. */
function settingsProblems(request: VariantRequest, path: string): Problem[] {
  const tensor = { name: "any", type: "FP32", dims: [1], format: null } as const;
  const checked: Variant = {
    name: request.name ?? "any",
    artefact: {
      ...{
        name: "any",
        platform: "other",
        precision: request.precision ?? "original",
        builtMaxBatchSize: null,
      },
      ...{ input: tensor, output: tensor, labelsFile: null },
    },
    // Preferred sizes are compared with the largest batch once that is known.
    maxBatchSize: request.maxBatchSize ?? 1024,
    instanceCount: request.instanceCount ?? 1,
    queueDelayUs: request.queueDelayUs ?? 0,
    preferredBatchSizes: request.preferredBatchSizes ?? [],
    published: null,
  };
  return variantProblems(checked, path);
}

function word<Word extends string>(
  value: unknown,
  words: readonly Word[],
  path: string,
  problems: Problem[],
): Word | null {
  if (value === undefined) return null;
  const found = words.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  problems.push({ path, message: `${JSON.stringify(value)} is unknown; use one of ${words.join(", ")}` });
  return null;
}

function complainAboutStrangers(
  object: Readonly<Record<string, unknown>>,
  known: readonly string[],
  what: string,
  path: string,
  problems: Problem[],
): void {
  for (const key of Object.keys(object).filter((name) => !known.includes(name)))
    problems.push({
      path: `${path}.${key}`,
      message: `is no key of ${what}${knownNames(key, known, "keys")}`,
    });
}

function isDims(value: unknown): value is readonly number[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((dim) => Number.isInteger(dim) && (dim as number) >= 1)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(path: string, message: string): InvalidVariantError {
  return new InvalidVariantError([{ path, message }]);
}
