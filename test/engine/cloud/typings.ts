/**
 * Reads from a Pulumi package's own typings what its provider accepts: the packages ship no schema, but their `.d.ts`
 * files are generated from it and very regular, so the syntax tree alone tells names, types and what is required.
 */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";

/** Type of a value. */
export type Shape =
  | { kind: "string" | "number" | "boolean" | "any" | "asset" }
  | { kind: "array" | "map"; of: Shape }
  | { kind: "oneOf"; of: Shape[] }
  | { kind: "object"; name: string; properties: ReadonlyMap<string, Property> };

/** A property of an object. */
export interface Property {
  required: boolean;
  shape: Shape;
}

/** What one resource type accepts and what its provider adds. */
export interface ResourceTypings {
  inputs: ReadonlyMap<string, Property>;
  /** Outputs that are no inputs, with the name of their type as written. */
  computed: ReadonlyMap<string, string>;
}

function parse(file: string): ts.SourceFile {
  return ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.ES2022, true);
}

/** Interfaces by qualified name, e.g. `container.NodePoolAutoscaling`. */
function interfacesIn(file: ts.SourceFile): Map<string, ts.InterfaceDeclaration> {
  const found = new Map<string, ts.InterfaceDeclaration>();
  const visit = (node: ts.Node, prefix: string): void => {
    if (ts.isInterfaceDeclaration(node)) found.set(prefix + node.name.text, node);
    if (ts.isModuleDeclaration(node) && node.body && ts.isModuleBlock(node.body)) {
      for (const statement of node.body.statements) visit(statement, `${prefix}${node.name.text}.`);
    }
  };
  for (const statement of file.statements) visit(statement, "");
  return found;
}

/** The typings of one npm package. */
export class PackageTypings {
  private readonly root: string;
  private inputTypes: Map<string, ts.InterfaceDeclaration> | undefined;
  private readonly objects = new Map<string, Map<string, Property>>();
  private readonly resources = new Map<string, ResourceTypings>();
  readonly version: string;

  /** @param name npm package, e.g. `@pulumi/gcp` */
  constructor(name: string) {
    const manifest = require.resolve(`${name}/package.json`);
    this.root = dirname(manifest);
    this.version = (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
  }

  /**
   * What a resource type accepts.
   * @param token e.g. `gcp:container/nodePool:NodePool`, `docker-build:index:Image`
   * @throws Error when the package has no such resource
   */
  resource(token: string): ResourceTypings {
    const known = this.resources.get(token);
    if (known) return known;
    const [, moduleName = "", className = ""] = token.split(":");
    const [folder = ""] = moduleName.split("/");
    const dir = folder === "index" ? this.root : join(this.root, folder);
    // IAMMember lies in iamMember.d.ts, NodePool in nodePool.d.ts: only case differs.
    const file =
      existsSync(dir) &&
      readdirSync(dir).find((name) => name.toLowerCase() === `${className.toLowerCase()}.d.ts`);
    if (!file)
      throw new Error(`${token} is no resource of this package: ${dir} has no file for ${className}`);
    const path = join(dir, file);
    const source = parse(path);
    const args = interfacesIn(source).get(`${className}Args`);
    const declaration = source.statements.find(
      (node): node is ts.ClassDeclaration => ts.isClassDeclaration(node) && node.name?.text === className,
    );
    if (!args || !declaration)
      throw new Error(`${token}: ${path} declares no class ${className} with arguments`);
    const inputs = this.properties(args);
    const computed = new Map<string, string>();
    for (const member of declaration.members.filter(ts.isPropertyDeclaration)) {
      const name = member.name.getText();
      const isStatic = member.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.StaticKeyword);
      if (!isStatic && !inputs.has(name)) computed.set(name, member.type?.getText() ?? "any");
    }
    const typings = { inputs, computed };
    this.resources.set(token, typings);
    return typings;
  }

  private properties(declaration: ts.InterfaceDeclaration): Map<string, Property> {
    const properties = new Map<string, Property>();
    for (const member of declaration.members.filter(ts.isPropertySignature)) {
      if (!member.type) continue;
      properties.set(member.name.getText(), {
        required: member.questionToken === undefined,
        shape: this.shape(member.type),
      });
    }
    return properties;
  }

  private namedObject(name: string): Shape {
    this.inputTypes ??= interfacesIn(parse(join(this.root, "types", "input.d.ts")));
    const declaration = this.inputTypes.get(name);
    if (!declaration) throw new Error(`types/input.d.ts declares no ${name}`);
    let properties = this.objects.get(name);
    if (!properties) {
      // Entered before it is filled: some types contain themselves.
      properties = new Map();
      this.objects.set(name, properties);
      for (const [key, property] of this.properties(declaration)) properties.set(key, property);
    }
    return { kind: "object", name, properties };
  }

  private shape(node: ts.TypeNode): Shape {
    if (ts.isParenthesizedTypeNode(node)) return this.shape(node.type);
    if (ts.isArrayTypeNode(node)) return { kind: "array", of: this.shape(node.elementType) };
    if (ts.isUnionTypeNode(node)) {
      const of = node.types
        .filter((part) => part.kind !== ts.SyntaxKind.UndefinedKeyword)
        .map((part) => this.shape(part));
      return of.length === 1 ? of[0]! : { kind: "oneOf", of };
    }
    if (ts.isTypeLiteralNode(node)) {
      const index = node.members.find(ts.isIndexSignatureDeclaration);
      if (index) return { kind: "map", of: this.shape(index.type) };
    }
    if (ts.isTypeReferenceNode(node)) return this.reference(node);
    switch (node.kind) {
      case ts.SyntaxKind.StringKeyword:
        return { kind: "string" };
      case ts.SyntaxKind.NumberKeyword:
        return { kind: "number" };
      case ts.SyntaxKind.BooleanKeyword:
        return { kind: "boolean" };
      case ts.SyntaxKind.AnyKeyword:
        return { kind: "any" };
      default:
        throw new Error(`Typings of a kind that this reader does not know: ${node.getText()}`);
    }
  }

  private reference(node: ts.TypeReferenceNode): Shape {
    const name = node.typeName.getText();
    const [argument] = node.typeArguments ?? [];
    if (name === "pulumi.Input" && argument) return this.shape(argument);
    if (name.startsWith("pulumi.asset.")) return { kind: "asset" };
    if (name.startsWith("inputs.")) return this.namedObject(name.slice("inputs.".length));
    if (name.startsWith("enums.")) return { kind: "string" };
    // A resource class stands for its id or name, e.g. a bucket given to an object.
    return { kind: "any" };
  }
}
