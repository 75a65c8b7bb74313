/**
 * A resource provider of Pulumi's protocol that pretends a cloud. It runs in the test's process and the engine attaches to
 * it (PULUMI_DEBUG_PROVIDERS), so that it goes on when the engine is killed, as a cloud does.
 */
import { createHash } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { ResourceProviderService } from "@pulumi/pulumi/proto/provider_grpc_pb";
import * as proto from "@pulumi/pulumi/proto/provider_pb";
import { Status } from "@pulumi/pulumi/proto/status_pb";
import { Any } from "google-protobuf/google/protobuf/any_pb";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { Struct, type JavaScriptValue } from "google-protobuf/google/protobuf/struct_pb";
import { replacePatterns } from "../../stack-engine/harness/replace-rules";
import { checkObject, UNKNOWN } from "./check";
import { covers, differences } from "./differences";
import { apiDisabled, permissionDenied, quotaExceeded, stockedOut } from "./google-errors";
import { CreatedBroken, Refused, type Kind, type ProviderDefinition } from "./kinds";
import { PackageTypings } from "./typings";
import type { Operation, Thing, Values, World } from "./world";

const struct = (values: Values): Struct => Struct.fromJavaScript(values as Record<string, JavaScriptValue>);
const values = (message: Struct | undefined): Values => message?.toJavaScript() ?? {};
const typeOf = (urn: string): string => urn.split("::")[2]?.split("$").pop() ?? "";
const nameOf = (urn: string): string => urn.split("::").slice(3).join("::");
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

type Unary<Q, A> = (request: Q) => Promise<A>;

/** A running stand-in. */
export class StandInProvider {
  private readonly server = new grpc.Server({ "grpc.max_receive_message_length": 64 << 20 });
  private readonly typings: PackageTypings;

  constructor(
    private readonly definition: ProviderDefinition,
    private readonly world: World,
  ) {
    this.typings = new PackageTypings(definition.npmPackage);
  }

  /** Serves on loopback. Returns `name:port`, the form of PULUMI_DEBUG_PROVIDERS. */
  async start(): Promise<string> {
    const unary =
      <Q, A>(handler: Unary<Q, A>) =>
      (call: grpc.ServerUnaryCall<Q, A>, done: grpc.sendUnaryData<A>) => {
        handler(call.request).then(
          (answer) => done(null, answer),
          (error: unknown) => done(error as grpc.ServiceError),
        );
      };
    const served: Partial<Record<keyof typeof ResourceProviderService, unknown>> = {
      handshake: unary(async () => new proto.ProviderHandshakeResponse()),
      attach: unary(async () => new Empty()),
      cancel: unary(async () => new Empty()),
      getPluginInfo: unary(async () => new PluginInfo().setVersion(this.typings.version)),
      checkConfig: unary(async (request: proto.CheckRequest) =>
        new proto.CheckResponse().setInputs(request.getNews()),
      ),
      diffConfig: unary(async () => new proto.DiffResponse()),
      configure: unary(async () => new proto.ConfigureResponse().setSupportspreview(true)),
      invoke: unary((request: proto.InvokeRequest) => this.invoke(request)),
      check: unary((request: proto.CheckRequest) => this.check(request)),
      diff: unary((request: proto.DiffRequest) => this.diff(request)),
      create: unary((request: proto.CreateRequest) =>
        this.world.during(typeOf(request.getUrn()), () => this.create(request)),
      ),
      read: unary((request: proto.ReadRequest) => this.read(request)),
      update: unary((request: proto.UpdateRequest) => this.update(request)),
      delete: unary((request: proto.DeleteRequest) => this.delete(request)),
    };
    const refuse = (_call: unknown, done: grpc.sendUnaryData<unknown>): void =>
      done({ code: grpc.status.UNIMPLEMENTED, details: "the stand-in does not do that" });
    const all = Object.keys(ResourceProviderService).map((name) => [
      name,
      served[name as keyof typeof served] ?? refuse,
    ]);
    this.server.addService(
      ResourceProviderService,
      Object.fromEntries(all) as grpc.UntypedServiceImplementation,
    );
    const port = await new Promise<number>((resolve, reject) => {
      const credentials = grpc.ServerCredentials.createInsecure();
      this.server.bindAsync("127.0.0.1:0", credentials, (error, bound) =>
        error ? reject(error) : resolve(bound),
      );
    });
    return `${this.definition.name}:${port}`;
  }

  stop(): void {
    this.server.forceShutdown();
  }

  private kind(type: string): Kind {
    const kind = this.definition.kinds[type];
    if (!kind)
      throw new Error(`The stand-in of ${this.definition.name} knows no ${type}: add it to its kinds.`);
    return kind;
  }

  private async check(request: proto.CheckRequest): Promise<proto.CheckResponse> {
    const type = typeOf(request.getUrn());
    this.kind(type);
    const { inputs } = this.typings.resource(type);
    const news = values(request.getNews());
    const olds = values(request.getOlds());
    const name = inputs.get("name");
    if (name && !name.required && news.name === undefined) {
      const seed = createHash("sha256").update(request.getRandomseed_asU8()).update(request.getUrn());
      news.name = olds.name ?? `${nameOf(request.getUrn())}-${seed.digest("hex").slice(0, 7)}`.toLowerCase();
      news.__defaults = ["name"];
    }
    const failures = checkObject(news, inputs, type).map(({ path, reason }) =>
      new proto.CheckFailure().setProperty(path).setReason(reason),
    );
    return new proto.CheckResponse().setInputs(struct(news)).setFailuresList(failures);
  }

  private async diff(request: proto.DiffRequest): Promise<proto.DiffResponse> {
    const type = typeOf(request.getUrn());
    const olds = values(request.getOldInputs());
    const news = values(request.getNews());
    const patterns = replacePatterns({ inputs: {} }, { type, inputs: {} }, undefined);
    const answer = new proto.DiffResponse().setHasdetaileddiff(true);
    const found = differences(olds, news);
    for (const { path, kind } of found) {
      const top = path.split(/[.[]/)[0] ?? path;
      const replaces = patterns.some((pattern) => covers(pattern, path));
      const kinds = proto.PropertyDiff.Kind;
      const plain = { add: kinds.ADD, delete: kinds.DELETE, update: kinds.UPDATE }[kind];
      const replacing = {
        add: kinds.ADD_REPLACE,
        delete: kinds.DELETE_REPLACE,
        update: kinds.UPDATE_REPLACE,
      }[kind];
      answer
        .getDetaileddiffMap()
        .set(path, new proto.PropertyDiff().setKind(replaces ? replacing : plain).setInputdiff(true));
      if (!answer.getDiffsList().includes(top)) answer.addDiffs(top);
      if (replaces && !answer.getReplacesList().includes(top)) answer.addReplaces(top);
    }
    const changes = proto.DiffResponse.DiffChanges;
    answer.setChanges(found.length > 0 ? changes.DIFF_SOME : changes.DIFF_NONE);
    // A name that the program chose cannot exist twice; a generated one gets a new suffix.
    const automatic = Array.isArray(news.__defaults) && news.__defaults.includes("name");
    return answer.setDeletebeforereplace(
      answer.getReplacesList().length > 0 && news.name !== undefined && !automatic,
    );
  }

  private outputs(type: string, inputs: Values, computed: Values): Struct {
    return struct({
      ...inputs,
      ...computed,
      ...(inputs.__defaults ? { __defaults: inputs.__defaults } : {}),
    });
  }

  private unknownOutputs(type: string): Values {
    const keys = [...this.typings.resource(type).computed.keys(), ...(this.kind(type).completed ?? [])];
    return Object.fromEntries(keys.map((key) => [key, UNKNOWN]));
  }

  /** What Google would say before it does anything. */
  private async admit(
    operation: Operation,
    type: string,
    logicalName: string,
    inputs: Values,
  ): Promise<void> {
    const kind = this.kind(type);
    const slow = this.world.failing("slow", operation, type, logicalName);
    if (slow) await sleep(slow.delayMs ?? 5000);
    const failing = (what: "quota" | "api-disabled" | "permission-denied"): boolean =>
      this.world.failing(what, operation, type, logicalName) !== undefined;
    if (failing("permission-denied")) throw new Refused(permissionDenied(type, operation, this.world));
    const enabled =
      kind.api === undefined || this.world.where("gcp:projects/service:Service", "service", kind.api);
    if (failing("api-disabled") || !enabled)
      throw new Refused(apiDisabled(kind.api ?? "compute.googleapis.com", this.world));
    if (failing("quota")) throw new Refused(quotaExceeded());
    const missing = operation === "create" ? kind.missing?.(inputs, this.world) : undefined;
    if (missing) throw new Refused(`googleapi: Error 404: The resource '${missing}' was not found, notFound`);
  }

  private async create(request: proto.CreateRequest): Promise<proto.CreateResponse> {
    const type = typeOf(request.getUrn());
    const inputs = values(request.getProperties());
    if (request.getPreview()) {
      return new proto.CreateResponse().setProperties(this.outputs(type, inputs, this.unknownOutputs(type)));
    }
    const kind = this.kind(type);
    const logicalName = nameOf(request.getUrn());
    const id = kind.id(inputs, this.world);
    const computed = { ...kind.computed?.(inputs, id, this.world) };
    const thing: Thing = { type, id, logicalName, inputs, computed };
    try {
      await this.admit("create", type, logicalName, inputs);
      if (this.world.find(type, id))
        throw new Refused(`googleapi: Error 409: Already exists: ${id}, alreadyExists`);
      if (this.world.failing("stockout", "create", type, logicalName)) thing.broken = stockedOut(id);
      this.world.put(thing);
      if (thing.broken) throw new CreatedBroken(thing.broken);
      await kind.create?.(thing, this.world);
      this.world.put(thing);
      this.world.log.push({ operation: "create", type, logicalName, id });
    } catch (error) {
      throw error instanceof CreatedBroken ? this.brokenError(thing, error) : plainError(error);
    }
    return new proto.CreateResponse().setId(id).setProperties(this.outputs(type, inputs, thing.computed));
  }

  /** The engine keeps a resource whose initialisation failed and repairs it at the next update. */
  private brokenError(thing: Thing, error: Error): grpc.ServiceError {
    const detail = new proto.ErrorResourceInitFailed()
      .setId(thing.id)
      .setProperties(this.outputs(thing.type, thing.inputs, thing.computed))
      .setInputs(struct(thing.inputs))
      .setReasonsList([error.message]);
    const packed = new Any();
    packed.pack(detail.serializeBinary(), "pulumirpc.ErrorResourceInitFailed");
    const status = new Status()
      .setCode(grpc.status.UNKNOWN)
      .setMessage(error.message)
      .setDetailsList([packed]);
    const metadata = new grpc.Metadata();
    metadata.add("grpc-status-details-bin", Buffer.from(status.serializeBinary()));
    return Object.assign(new Error(error.message), {
      code: grpc.status.UNKNOWN,
      details: error.message,
      metadata,
    });
  }

  private async read(request: proto.ReadRequest): Promise<proto.ReadResponse> {
    const type = typeOf(request.getUrn());
    const thing = this.world.find(type, request.getId());
    // An empty answer says that it is gone.
    if (!thing) return new proto.ReadResponse();
    // Only what the program sets is compared; an import gets all.
    const known = values(request.getInputs());
    const keys = Object.keys(known).length > 0 ? Object.keys(known) : Object.keys(thing.inputs);
    const inputs = Object.fromEntries(keys.map((key) => [key, thing.inputs[key] ?? known[key]]));
    return new proto.ReadResponse()
      .setId(thing.id)
      .setInputs(struct(inputs))
      .setProperties(this.outputs(type, { ...values(request.getProperties()), ...inputs }, thing.computed));
  }

  private async update(request: proto.UpdateRequest): Promise<proto.UpdateResponse> {
    const type = typeOf(request.getUrn());
    const inputs = values(request.getNews());
    const kind = this.kind(type);
    const logicalName = nameOf(request.getUrn());
    const id = request.getId();
    const computed = { ...kind.computed?.(inputs, id, this.world) };
    const before = this.world.find(type, id);
    const kept = { ...before?.computed, ...computed };
    if (request.getPreview())
      return new proto.UpdateResponse().setProperties(this.outputs(type, inputs, kept));
    try {
      await this.admit("update", type, logicalName, inputs);
      if (!before) throw new Refused(`googleapi: Error 404: Not found: ${id}., notFound`);
      const stillOut = before.broken && this.world.failing("stockout", "create", type, logicalName);
      const thing: Thing = {
        type,
        id,
        logicalName,
        inputs,
        computed: kept,
        broken: stillOut ? before.broken : undefined,
      };
      this.world.put(thing);
      if (thing.broken) throw new Refused(thing.broken);
      await kind.update?.(thing, this.world);
      this.world.put(thing);
      this.world.log.push({ operation: "update", type, logicalName, id });
      return new proto.UpdateResponse().setProperties(this.outputs(type, inputs, thing.computed));
    } catch (error) {
      throw plainError(error);
    }
  }

  private async delete(request: proto.DeleteRequest): Promise<Empty> {
    const type = typeOf(request.getUrn());
    const kind = this.kind(type);
    const thing = this.world.find(type, request.getId());
    if (!thing) return new Empty();
    try {
      await this.admit("delete", type, thing.logicalName, thing.inputs);
      const holder = await kind.heldBy?.(thing, this.world);
      if (holder) throw new Refused(`googleapi: Error 400: ${holder}`);
      await kind.remove?.(thing, this.world);
      this.world.remove(thing);
      this.world.log.push({ operation: "delete", type, logicalName: thing.logicalName, id: thing.id });
    } catch (error) {
      throw plainError(error);
    }
    return new Empty();
  }

  private async invoke(request: proto.InvokeRequest): Promise<proto.InvokeResponse> {
    const source = this.definition.dataSources[request.getTok()];
    if (!source)
      throw new Error(`The stand-in of ${this.definition.name} knows no data source ${request.getTok()}.`);
    try {
      return new proto.InvokeResponse().setReturn(struct(source(values(request.getArgs()), this.world)));
    } catch (error) {
      throw plainError(error);
    }
  }
}

function plainError(error: unknown): grpc.ServiceError {
  const message = error instanceof Error ? error.message : String(error);
  const details = error instanceof Refused ? `1 error occurred:\n\t* ${message}\n` : message;
  return Object.assign(new Error(details), {
    code: grpc.status.UNKNOWN,
    details,
    metadata: new grpc.Metadata(),
  });
}
