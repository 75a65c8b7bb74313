/** Reads a `RegisterResource` request of Pulumi's protocol into a {@link Registration}. */
import type { Alias } from "@pulumi/pulumi/proto/alias_pb";
import type { RegisterResourceRequest } from "@pulumi/pulumi/proto/resource_pb";
import { decodeMap } from "./property-value";
import type { AliasSpec, Registration } from "./recording";

/** A registration before the engine has answered it. */
export type Asked = Omit<Registration, "outputs" | "id" | "sequence">;

export function registrationOf(
  request: RegisterResourceRequest,
  project: string,
  stack: string,
  programDir: string,
): Asked {
  const about = { type: request.getType(), name: request.getName(), parent: request.getParent() };
  const timeouts = request.getCustomtimeouts();
  return {
    ...about,
    urn: urnOf(project, stack, about),
    custom: request.getCustom(),
    inputs: decodeMap(request.getObject()?.toJavaScript() ?? {}, programDir),
    dependencies: request.getDependenciesList(),
    propertyDependencies: Object.fromEntries(
      [...request.getPropertydependenciesMap().entries()].map(([key, value]) => [key, value.getUrnsList()]),
    ),
    provider: request.getProvider(),
    providers: Object.fromEntries(request.getProvidersMap().entries()),
    protect: request.hasProtect() ? request.getProtect() : undefined,
    retainOnDelete: request.hasRetainondelete() ? request.getRetainondelete() : undefined,
    deleteBeforeReplace: request.getDeletebeforereplacedefined()
      ? request.getDeletebeforereplace()
      : undefined,
    deletedWith: request.getDeletedwith(),
    replaceWith: request.getReplaceWithList(),
    ignoreChanges: request.getIgnorechangesList(),
    replaceOnChanges: request.getReplaceonchangesList(),
    hideDiffs: request.getHidediffsList(),
    additionalSecretOutputs: request.getAdditionalsecretoutputsList(),
    aliases: [
      ...request
        .getAliasurnsList()
        .map((urn) => ({ urn, name: "", type: "", parentUrn: "", noParent: false })),
      ...request.getAliasesList().map(aliasOf),
    ],
    customTimeouts: {
      create: timeouts?.getCreate() ?? "",
      update: timeouts?.getUpdate() ?? "",
      delete: timeouts?.getDelete() ?? "",
    },
    importId: request.getImportid(),
    version: request.getVersion(),
  };
}

function aliasOf(alias: Alias): AliasSpec {
  const spec = alias.getSpec();
  return {
    urn: alias.getUrn(),
    name: spec?.getName() ?? "",
    type: spec?.getType() ?? "",
    parentUrn: spec?.getParenturn() ?? "",
    noParent: spec?.getNoparent() ?? false,
  };
}

/** The engine's rule for URNs: the types of all parents but the stack stand before the resource's own, joined by `$`. */
export function urnOf(
  project: string,
  stack: string,
  about: { type: string; name: string; parent: string },
): string {
  const parentTypes = about.parent.split("::")[2] ?? "";
  const qualified =
    parentTypes === "" || parentTypes === "pulumi:pulumi:Stack" ? about.type : `${parentTypes}$${about.type}`;
  return `urn:pulumi:${stack}::${project}::${qualified}::${about.name}`;
}
