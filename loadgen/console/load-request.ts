/** What the console asks for, checked, and the load spec that it becomes. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { DEFAULT_CONNECTIONS } from "../transport";
import type { ModelRequest } from "../describe-model";
import { peakRatePerS, type LoadProfile } from "../load-profile";
import type { LoadSpec } from "../load-spec";
import { defaultMinSamples } from "../stop-rule";

const arrivals = z.enum(["poisson", "constant"]);
const figure = z.number();

/** Ranges are checked by checkLoadSpec, with sentences. */
export const shapeSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("poisson"), ratePerS: figure }),
  z.object({ kind: z.literal("constant"), ratePerS: figure }),
  z.object({
    kind: z.literal("users"),
    users: figure,
    spawnPerS: figure,
    thinkMinS: figure,
    thinkMaxS: figure,
    maxRatePerS: figure.optional(),
  }),
  z.object({ kind: z.literal("ramp"), fromPerS: figure, toPerS: figure, overS: figure, arrivals }),
  z.object({
    kind: z.literal("steps"),
    steps: z.array(z.object({ ratePerS: figure, forS: figure })).max(1000),
    arrivals,
  }),
]);

export const changeSchema = z.object({ shape: shapeSchema });

export const loadRequestSchema = z.object({
  /** One of the controller's targets. */
  target: z.string(),
  /** Empty: the only one that is ready. */
  model: z.string(),
  shape: shapeSchema,
  warmupS: figure,
  durationS: figure,
  slo: z.object({ quantile: z.number().gt(0).lt(1), boundMs: figure }),
  /** Length of the stop rule's window, seconds; null: no rule. The rule's percentile and bound are the SLO's. */
  stopWindowS: figure.nullable(),
  newConnectionPerRequest: z.boolean(),
});

export type LoadRequest = z.infer<typeof loadRequestSchema>;

/** A user of a console may turn the load up: cap for so many times the load that it starts with. */
const ROOM_TO_GROW = 10;
const LEAST_IN_FLIGHT = 10_000;
const CHECK_EVERY = 50;

/** @param maxInFlight limit of the controller */
export function specOfRequest(
  request: LoadRequest,
  model: ModelRequest,
  imageFolder: string,
  maxInFlight: number,
): LoadSpec {
  const { shape, slo, warmupS, durationS, stopWindowS } = request;
  const stopWhen =
    stopWindowS === null
      ? {}
      : { stopWhen: { ...slo, windowS: stopWindowS, minSamples: defaultMinSamples(slo.quantile) } };
  return {
    id: `console-${new Date().toISOString().replaceAll(/[-:]|\..*/g, "")}-${randomUUID().slice(0, 4)}`,
    addresses: [request.target],
    ...model,
    imageFolder,
    knownAnswers: null,
    scoreTolerance: 1,
    checkEvery: CHECK_EVERY,
    shape,
    seed: 1,
    warmupS,
    measureS: durationS,
    sloBoundMs: slo.boundMs,
    sloQuantile: slo.quantile,
    deadlineMs: Math.max(5000, 10 * slo.boundMs),
    maxInFlight: Math.min(
      maxInFlight,
      Math.max(LEAST_IN_FLIGHT, ROOM_TO_GROW * inFlightOf(shape, slo.boundMs)),
    ),
    connectionsPerAddress: DEFAULT_CONNECTIONS,
    transport: "lean",
    timeDilation: 1,
    ...stopWhen,
    ...(request.newConnectionPerRequest ? { newConnectionPerRequest: true } : {}),
    subject: { variant: model.modelName, trial: "console" },
  };
}

/** By Little's law, of a server that just holds the bound. */
function inFlightOf(shape: LoadProfile, boundMs: number): number {
  return shape.kind === "users" ? shape.users : Math.ceil((peakRatePerS(shape) * boundMs) / 1000);
}
