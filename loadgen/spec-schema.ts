/** Types of a load spec that comes as JSON; what the figures may be is checked by checkLoadSpec, with sentences. */
import { z } from "zod";
import { shapeSchema } from "./console/load-request";

const text = z.string();
const figure = z.number();

export const loadSpecSchema = z.object({
  id: text.min(1).max(200),
  addresses: z.array(text).max(1000),
  modelName: text,
  inputName: text,
  outputName: text,
  inputType: z.enum(["FP32", "UINT8"]),
  inputDims: z.array(figure).optional(),
  imageFolder: text,
  knownAnswers: z.array(z.object({ classIndex: figure, label: text, score: figure })).nullable(),
  scoreTolerance: figure,
  checkEvery: figure,
  shape: z.discriminatedUnion("kind", [
    ...shapeSchema.options,
    // A million numbers; checkLoadSpec looks at each.
    z.object({ kind: z.literal("recorded"), atS: z.custom<readonly number[]>(Array.isArray, "not a list") }),
  ]),
  seed: figure,
  warmupS: figure,
  measureS: figure,
  sloBoundMs: figure,
  sloQuantile: z.number().gt(0).lt(1).optional(),
  deadlineMs: figure,
  maxInFlight: figure,
  connectionsPerAddress: z.number().max(1000),
  transport: z.enum(["lean", "grpc-js"]),
  timeDilation: figure,
  stopWhen: z.object({ quantile: figure, boundMs: figure, windowS: figure, minSamples: figure }).optional(),
  newConnectionPerRequest: z.boolean().optional(),
  tls: z.object({ caPem: text, serverName: text }).optional(),
  subject: z.object({ variant: text, trial: text }).optional(),
});

/** What is wrong with the types of a request's content, in one line. */
export function issuesOf(
  issues: readonly { readonly path: PropertyKey[]; readonly message: string }[],
): string {
  return issues.map(({ path, message }) => `${path.join(".") || "request"}: ${message}`).join("; ");
}
