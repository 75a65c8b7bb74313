/** What one run of a Pulumi program asked the engine for. */
import { at, type PropertyMap, type PropertyValue } from "./property-value";

/** One `new Resource(...)` as the engine receives it: inputs and every option. */
export interface Registration {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  /** True for resources of a provider, false for components and the stack. */
  readonly custom: boolean;
  /** URN of the parent; empty only for the stack itself. */
  readonly parent: string;
  readonly inputs: PropertyMap;
  /** What the stub answered. */
  readonly outputs: PropertyMap;
  /** Id that the stub answered; empty while unknown and for components. */
  readonly id: string;
  /** All dependencies, explicit and by property. */
  readonly dependencies: readonly string[];
  readonly propertyDependencies: Readonly<Record<string, readonly string[]>>;
  /** `urn::id` of the provider; empty means the default provider. */
  readonly provider: string;
  /** Providers that a component hands to its children, by package. */
  readonly providers: Readonly<Record<string, string>>;
  readonly protect: boolean | undefined;
  readonly retainOnDelete: boolean | undefined;
  readonly deleteBeforeReplace: boolean | undefined;
  readonly deletedWith: string;
  readonly replaceWith: readonly string[];
  readonly ignoreChanges: readonly string[];
  readonly replaceOnChanges: readonly string[];
  readonly hideDiffs: readonly string[];
  readonly additionalSecretOutputs: readonly string[];
  readonly aliases: readonly AliasSpec[];
  readonly customTimeouts: { readonly create: string; readonly update: string; readonly delete: string };
  readonly importId: string;
  /** SDK version of the package, as the engine uses it to choose the plugin. */
  readonly version: string;
  /** Position in the order in which the engine saw the registrations. */
  readonly sequence: number;
}

/** Former identity of a resource; empty fields mean "as now". */
export interface AliasSpec {
  readonly urn: string;
  readonly name: string;
  readonly type: string;
  readonly parentUrn: string;
  readonly noParent: boolean;
}

/** A data source that the program asked for. */
export interface Invoke {
  readonly token: string;
  readonly args: PropertyMap;
  readonly provider: string;
}

export interface LogLine {
  readonly severity: "info" | "warning" | "error";
  readonly message: string;
  readonly urn: string;
}

/** Everything one run of a program did. */
export class Recording {
  private readonly byUrn = new Map<string, Registration>();
  readonly invokes: Invoke[] = [];
  readonly log: LogLine[] = [];
  /** Outputs given to `registerOutputs`, by URN. */
  readonly registeredOutputs = new Map<string, PropertyMap>();
  /** Resources that the program read instead of created (`Resource.get`). */
  readonly reads: { readonly type: string; readonly name: string; readonly id: string }[] = [];
  /** Seconds between the first and the last call of the program. */
  durationS = 0;

  constructor(readonly mode: "preview" | "up") {}

  add(registration: Registration): void {
    this.byUrn.set(registration.urn, registration);
  }

  get(urn: string): Registration | undefined {
    return this.byUrn.get(urn);
  }

  /** All registrations in the order in which the engine saw them. */
  get all(): Registration[] {
    return [...this.byUrn.values()];
  }

  ofType(type: string): Registration[] {
    return this.all.filter((registration) => registration.type === type);
  }

  /**
   * The one registration of that type whose logical name is `name` or, without a name, the only one of the type.
   *
   * @throws when there is none or more than one
   */
  one(type: string, name?: string): Registration {
    const found = this.ofType(type).filter(
      (registration) => name === undefined || registration.name === name,
    );
    const only = found[0];
    if (only === undefined || found.length > 1) {
      const seen = this.ofType(type).map((registration) => registration.name);
      throw new Error(
        `${found.length} resources ${type}${name === undefined ? "" : ` named ${name}`}; seen: ${seen.join(", ") || "none"}.`,
      );
    }
    return only;
  }

  /** Outputs of the stack itself. */
  get stackOutputs(): PropertyMap {
    const stack = this.one("pulumi:pulumi:Stack");
    return this.registeredOutputs.get(stack.urn) ?? {};
  }

  /** Messages of warnings and errors. */
  get complaints(): string[] {
    return this.log
      .filter((line) => line.severity === "warning" || line.severity === "error")
      .map((line) => line.message);
  }

  /**
   * Everything that must exist before `registration` and is deleted after it: dependencies, parents and the provider,
   * with theirs. A dependency on a component means its children too, as in the SDK.
   */
  prerequisites(registration: Registration): Set<string> {
    const seen = new Set<string>();
    const open = [registration.urn];
    for (let urn = open.pop(); urn !== undefined; urn = open.pop()) {
      const here = this.byUrn.get(urn);
      if (here === undefined) continue;
      for (const next of [...here.dependencies, here.parent, providerUrn(here.provider)]) {
        if (next === "" || seen.has(next)) continue;
        seen.add(next);
        open.push(next);
      }
    }
    return seen;
  }

  /** True when `later` is created after `earlier` has been created, and deleted before it. */
  comesAfter(later: Registration, earlier: Registration): boolean {
    return this.prerequisites(later).has(earlier.urn);
  }
}

/** URN part of a provider reference `urn::id`. */
export function providerUrn(reference: string): string {
  return reference === "" ? "" : reference.slice(0, reference.lastIndexOf("::"));
}

/** Input of a registration by path; see {@link at}. */
export function input(registration: Registration, path: string): PropertyValue | undefined {
  return at(registration.inputs, path);
}
