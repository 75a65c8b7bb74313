/** What an explanation says, and how it is printed. */

/** The gates that a deployment passes, in this order. */
export const gates = [
  "lock",
  "api",
  "permission",
  "quota",
  "stockout",
  "pool-full",
  "placement",
  "node-starting",
  "driver",
  "image",
  "iam",
  "model",
  "field-conflict",
] as const;

export type Gate = (typeof gates)[number];

/** A command to run next. */
export interface Step {
  why: string;
  command: string;
}

/** Why a deployment does not get ready. */
export interface Explanation {
  gate: Gate;
  /** What holds it, one sentence. */
  summary: string;
  /** Literal evidence: events, conditions, log lines, each with its source. */
  evidence: string[];
  steps: Step[];
  /** True when waiting cannot help. */
  stuck: boolean;
}

/** An explanation as text. */
export function render(explanation: Explanation): string {
  const lines = [`${explanation.summary}  [gate: ${explanation.gate}]`];
  for (const item of explanation.evidence) lines.push(`  seen: ${item}`);
  for (const step of explanation.steps) lines.push(`  next: ${step.why}`, `        ${step.command}`);
  return lines.join("\n");
}
