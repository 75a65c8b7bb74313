/** How a stand-in provider treats one resource type, beyond what the typings say. */
import type { Thing, Values, World } from "./world";

/** A call that the cloud refuses. */
export class Refused extends Error {}

/** Creation that failed after the thing came into being; it stays, broken. */
export class CreatedBroken extends Error {}

export interface Kind {
  /** Id of the resource, from its inputs. */
  id(inputs: Values, world: World): string;
  /** Outputs that the cloud adds. The same inputs give the same outputs. */
  computed?(inputs: Values, id: string, world: World): Values;
  /** Inputs to which the cloud adds values of its own, so that they are not known before the resource exists. */
  completed?: readonly string[];
  /** Google API that must be enabled. */
  api?: string;
  /** Name of the first thing that this one needs and that does not exist. */
  missing?(inputs: Values, world: World): string | undefined;
  /** What still uses it, so that it cannot be deleted. */
  heldBy?(thing: Thing, world: World): string | undefined | Promise<string | undefined>;
  /** Effects beyond the entry in the world. */
  create?(thing: Thing, world: World): Promise<void>;
  update?(thing: Thing, world: World): Promise<void>;
  remove?(thing: Thing, world: World): Promise<void>;
}

/** A data source: answer by arguments. */
export type DataSource = (args: Values, world: World) => Values;

/** All that a stand-in provider is. */
export interface ProviderDefinition {
  /** Plugin name, e.g. `gcp`. */
  name: string;
  /** npm package that the typings come from. */
  npmPackage: string;
  kinds: Readonly<Record<string, Kind>>;
  dataSources: Readonly<Record<string, DataSource>>;
}
