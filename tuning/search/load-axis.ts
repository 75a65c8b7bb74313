/** The one number that a search varies, and the load that belongs to it: requests a second, or users. */
import type { LoadShape } from "../../loadgen/load-spec";
import type { SimulatedShape } from "../../serving-model/arrival-source";
import { documentsThink } from "../../serving-model/truth";

export type LoadMode = "poisson" | "constant" | "users";

/** The load at `value` (requests/s, or users rounded to a whole number). */
export function shapeAt(mode: LoadMode, value: number): LoadShape {
  if (mode !== "users") return { kind: mode, ratePerS: value };
  const users = Math.max(1, Math.round(value));
  // All within one second: the search judges fixed numbers of users, not a ramp.
  return { kind: "users", users, spawnPerS: users, ...documentsThink };
}

/** The inverse of shapeAt. */
export function valueOf(shape: LoadShape): number {
  return shape.kind === "users" ? shape.users : shape.ratePerS;
}

/** The load that a node sees when `overheadMs` pass outside it: users also wait for that before they think. */
export function withOverhead<Shape extends SimulatedShape>(shape: Shape, overheadMs: number): Shape {
  if (shape.kind !== "users") return shape;
  const overheadS = overheadMs / 1000;
  return { ...shape, thinkMinS: shape.thinkMinS + overheadS, thinkMaxS: shape.thinkMaxS + overheadS };
}
