/**
 * Classification extension: an output answered as BYTES, each element `score:index:label`
 * (https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_classification.md).
 * BYTES elements carry a 4-byte little-endian length each.
 */

export interface Classification {
  readonly score: number;
  readonly classIndex: number;
  /** Null when the model has no labels. */
  readonly label: string | null;
}

/** The bytes are no list of `score:index[:label]`. */
export class ClassificationError extends Error {
  override readonly name = "ClassificationError";
}

/** Splits a raw BYTES tensor into its elements: views, not copies. */
export function decodeBytesTensor(raw: Buffer): Buffer[] {
  const elements: Buffer[] = [];
  for (let position = 0; position < raw.length;) {
    const start = position + 4;
    if (start > raw.length)
      throw new ClassificationError(`BYTES tensor: a length is cut off at byte ${position}`);
    const length = raw.readUInt32LE(position);
    position = start + length;
    if (position > raw.length)
      throw new ClassificationError(
        `BYTES tensor: an element of ${length} bytes goes past the end at byte ${start}`,
      );
    elements.push(raw.subarray(start, position));
  }
  return elements;
}

export function encodeBytesTensor(elements: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  for (const element of elements) {
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32LE(element.length);
    parts.push(length, element);
  }
  return Buffer.concat(parts);
}

/** As Triton writes it: the score with six decimals. */
export function encodeClassifications(classes: readonly Classification[]): Buffer {
  return encodeBytesTensor(
    classes.map(({ score, classIndex, label }) =>
      Buffer.from(`${score.toFixed(6)}:${classIndex}${label === null ? "" : `:${label}`}`, "utf8"),
    ),
  );
}

const entry = /^(-?(?:\d+(?:\.\d*)?|inf|nan)(?:e[+-]?\d+)?):(\d{1,9})(?::([^]*))?$/i;

/**
 * Classes of a raw BYTES output, best first as the server sent them. A label may itself contain colons.
 * @throws ClassificationError
 */
export function decodeClassifications(raw: Buffer): Classification[] {
  return decodeBytesTensor(raw).map((element) => {
    const text = element.toString("utf8");
    const match = entry.exec(text);
    if (match === null)
      throw new ClassificationError(
        `not a classification "score:index:label": ${JSON.stringify(text.slice(0, 80))}`,
      );
    const [, score = "", classIndex = "", label] = match;
    return { score: parseScore(score), classIndex: Number(classIndex), label: label ?? null };
  });
}

function parseScore(text: string): number {
  if (/inf/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  return Number(text);
}
