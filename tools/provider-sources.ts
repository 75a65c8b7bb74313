/**
 * Prepares the build of Pulumi's Kubernetes provider. Its published module lacks two generated files, and it carries
 * the whole generated Go SDK for one function; both are dealt with here.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { run, type BuildContext } from "./go-build";

const providerModule = "github.com/pulumi/pulumi-kubernetes/provider/v4";
const sdkModule = "github.com/pulumi/pulumi-kubernetes/sdk/v4";
/** The packages of the SDK that the provider reaches once `kinds.go` is cut; the root package is "". */
const sdkPackages = ["", "utilities", "internal", "helm/v4", "yaml/v2", "apiextensions", "meta/v1"];

function requiredVersion(goMod: string, module: string): string {
  const version = new RegExp(`^(?:require )?\\s*${module.replaceAll(".", "\\.")} (v\\S+)`, "m").exec(
    goMod,
  )?.[1];
  if (!version) throw new Error(`${module} is not required by go.mod of the provider`);
  return version;
}

async function moduleDir(context: BuildContext, module: string, version: string): Promise<string> {
  const answer = await run(context, "go", ["mod", "download", "-json", `${module}@${version}`]);
  return (JSON.parse(answer) as { Dir: string }).Dir;
}

function copyPackage(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from).filter((entry) => statSync(join(from, entry)).isFile())) {
    writeFileSync(join(to, name), readFileSync(join(from, name)));
  }
}

/**
 * `RegisterResource` in yaml/v2 is a switch with one typed branch per kind, each pulling a generated package in. Its
 * default branch registers any kind; only core kinds need their group spelled out there. Keeping that branch alone
 * removes about 60 packages, two thirds of the compile time.
 */
export function cutKinds(source: string): string {
  const start = source.indexOf("func RegisterResource(");
  const switchAt = source.indexOf("\tswitch fullKind {", start);
  const generic = "default:\n\t\tvar res apiextensions.CustomResource";
  const genericAt = source.indexOf(generic, switchAt);
  if (start < 0 || switchAt < 0 || genericAt < 0)
    throw new Error("yaml/v2/kinds.go of the provider's SDK has changed");
  const withoutBranches = `${source.slice(0, switchAt)}\tswitch fullKind {\n\t${source.slice(genericAt)}`;
  const aliasedImport = /^\s*\w+ "github\.com\/pulumi\/pulumi-kubernetes\/sdk\/v4\/go\/kubernetes\/.*\n/gm;
  const coreGroup =
    'default:\n\t\tif apiVersion == "v1" {\n\t\t\tapiVersion = "core/v1"\n\t\t}\n\t\tvar res apiextensions.CustomResource';
  return withoutBranches.replace(aliasedImport, "").replace(generic, coreGroup);
}

function embedJson(from: string, to: string, change: (value: Record<string, unknown>) => void): void {
  const value = JSON.parse(readFileSync(from, "utf8")) as Record<string, unknown>;
  change(value);
  writeFileSync(to, JSON.stringify(value));
}

/** Writes `sdk-lite/` and the two embedded files into the work folder. */
export async function prepareProviderSources(context: BuildContext, version: string): Promise<void> {
  context.progress("downloading the provider's sources");
  const goMod = readFileSync(join(context.workDir, "go.mod"), "utf8");
  const sdk = await moduleDir(context, sdkModule, requiredVersion(goMod, sdkModule));
  const lite = join(context.workDir, "sdk-lite");
  rmSync(lite, { recursive: true, force: true });
  for (const name of sdkPackages) {
    const from = join(sdk, "go", "kubernetes", name);
    if (existsSync(from)) copyPackage(from, join(lite, "go", "kubernetes", name));
  }
  for (const name of ["go.mod", "go.sum"]) writeFileSync(join(lite, name), readFileSync(join(sdk, name)));
  const kinds = join(lite, "go", "kubernetes", "yaml", "v2", "kinds.go");
  writeFileSync(kinds, cutKinds(readFileSync(kinds, "utf8")));

  const published = join(
    await moduleDir(context, providerModule, requiredVersion(goMod, providerModule)),
    "cmd",
    "pulumi-resource-kubernetes",
  );
  const own = join(context.workDir, "cmd", "pulumi-resource-kubernetes");
  embedJson(
    join(published, "schema.json"),
    join(own, "schema-embed.json"),
    (schema) => (schema.version = version),
  );
  embedJson(
    join(published, "terraform-mapping.json"),
    join(own, "terraform-mapping-embed.json"),
    () => undefined,
  );
}
