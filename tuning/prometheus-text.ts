/** Reader for the Prometheus text exposition format, as far as Triton and the load generator use it. */

/** One sample line: name, labels, value. */
export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*,?\s*/gy;

/**
 * Parses an exposition. Comment lines are passed over.
 * @throws Error naming the line that is not in the format.
 */
export function parsePrometheusText(text: string): MetricSample[] {
  const samples: MetricSample[] = [];
  const lines = text.split("\n");
  for (const [index, raw] of lines.entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const match = LINE.exec(line);
    if (!match) throw new Error(`metrics line ${index + 1} is not Prometheus text: ${line.slice(0, 120)}`);
    samples.push({
      name: match[1]!,
      labels: parseLabels(match[2] ?? "", index + 1),
      value: parseValue(match[3]!, index + 1),
    });
  }
  return samples;
}

/** Sum over all samples of `name` whose labels include `labels`; null when there is no such sample. */
export function sumOf(
  samples: readonly MetricSample[],
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | null {
  let sum: number | null = null;
  for (const sample of samples) {
    if (
      sample.name === name &&
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value)
    ) {
      sum = (sum ?? 0) + sample.value;
    }
  }
  return sum;
}

function parseLabels(text: string, lineNumber: number): Record<string, string> {
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  let end = 0;
  while (end < text.length) {
    const match = LABEL.exec(text);
    if (!match) throw new Error(`metrics line ${lineNumber} has malformed labels: {${text.slice(0, 120)}}`);
    labels[match[1]!] = match[2]!.replace(/\\(.)/g, (_all, char: string) => (char === "n" ? "\n" : char));
    end = LABEL.lastIndex;
  }
  return labels;
}

function parseValue(text: string, lineNumber: number): number {
  if (text === "+Inf" || text === "Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  const value = Number(text);
  if (Number.isNaN(value) && text !== "NaN")
    throw new Error(`metrics line ${lineNumber} has no number: ${text.slice(0, 40)}`);
  return value;
}
