/**
 * The smallest engine that a Pulumi program can run against: ResourceMonitor and Engine services of pulumi/pulumi's
 * protocol, served in this process. It creates nothing; it records what it is asked for and answers plausibly.
 */
import { Server, ServerCredentials, status } from "@grpc/grpc-js";
import type {
  ServiceError,
  sendUnaryData,
  ServerUnaryCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { EngineService } from "@pulumi/pulumi/proto/engine_grpc_pb";
import {
  GetRootResourceResponse,
  LogSeverity,
  RequirePulumiVersionResponse,
  SetRootResourceResponse,
  type GetRootResourceRequest,
  type LogRequest,
  type RequirePulumiVersionRequest,
  type SetRootResourceRequest,
} from "@pulumi/pulumi/proto/engine_pb";
import { InvokeResponse } from "@pulumi/pulumi/proto/provider_pb";
import { ResourceMonitorService } from "@pulumi/pulumi/proto/resource_grpc_pb";
import {
  ReadResourceResponse,
  RegisterResourceResponse,
  SupportsFeatureResponse,
  type ReadResourceRequest,
  type RegisterResourceOutputsRequest,
  type RegisterResourceRequest,
  type ResourceInvokeRequest,
  type SupportsFeatureRequest,
} from "@pulumi/pulumi/proto/resource_pb";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";
import { Struct } from "google-protobuf/google/protobuf/struct_pb";
import { answerTo, refuse, type AnswerOptions } from "./answer";
import { compare } from "./compare";
import { answerInvoke, type InvokeFixtures } from "./invokes";
import { computedOutputs } from "./outputs";
import { decodeMap, encodeMap, type PropertyMap } from "./property-value";
import { providerUrn, Recording } from "./recording";
import { registrationOf, urnOf, type Asked } from "./registration";

export interface MonitorOptions extends AnswerOptions {
  readonly project: string;
  readonly stack: string;
  /** Folder that relative asset paths refer to. */
  readonly programDir: string;
  /** The stack as it stands: the recording of the last up. Absent means an empty stack. */
  readonly prior?: Recording;
  readonly invokes?: InvokeFixtures;
  /**
   * Return a message to make the creation or update fail with it. As in the real engine the failure goes to the log, and the
   * program hears only that the monitor shuts down.
   */
  readonly failOn?: (registration: Asked) => string | undefined;
}

/**
 * Features the stub has. Transforms, hooks and parameterised packages call back into the program and are left out: the SDK
 * then refuses them with a message of its own instead of ignoring them.
 */
const FEATURES = new Set([
  "secrets",
  "resourceReferences",
  "outputValues",
  "deletedWith",
  "replaceWith",
  "aliasSpecs",
]);

const SEVERITY = new Map<LogSeverity, "info" | "warning" | "error">([
  [LogSeverity.INFO, "info"],
  [LogSeverity.WARNING, "warning"],
  [LogSeverity.ERROR, "error"],
]);

export class Monitor {
  readonly recording: Recording;
  private readonly server = new Server({
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  private readonly replaced = new Set<string>();
  private rootUrn = "";
  private firstCallAt: number | undefined;
  private start: () => void = () => undefined;
  /** Settles with the program's first call. */
  readonly started = new Promise<void>((resolve) => (this.start = resolve));
  private readonly running = new Map<number, string>();
  private calls = 0;
  private failedOn: string | undefined;
  private breakDown: (error: Error) => void = () => undefined;
  /** Rejects when the stub itself cannot go on: an answer, a rule or a method is missing. */
  readonly broken = new Promise<never>((_resolve, reject) => (this.breakDown = reject));

  private constructor(private readonly options: MonitorOptions) {
    this.recording = new Recording(options.mode);
    this.server.addService(ResourceMonitorService, this.monitorService());
    this.server.addService(EngineService, this.engineService());
  }

  /** Starts the two services on a free port of the loopback address. */
  static async start(options: MonitorOptions): Promise<{ monitor: Monitor; address: string }> {
    const monitor = new Monitor(options);
    // Handled by whoever waits for the run; alone it must not count as unhandled.
    monitor.broken.catch(() => undefined);
    const port = await new Promise<number>((resolve, reject) => {
      monitor.server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => {
        if (error) reject(error);
        else resolve(bound);
      });
    });
    return { monitor, address: `127.0.0.1:${port}` };
  }

  /** Closes the port and all connections at once. */
  stop(): void {
    this.server.forceShutdown();
  }

  /** The failure of a resource that ended the run, if one did. */
  get failure(): string | undefined {
    return this.failedOn;
  }

  /** What was asked for and not yet answered, and the last resource seen: evidence for a run that hangs. */
  progress(): string {
    const last = this.recording.all.at(-1);
    const open = [...this.running.values()];
    const said = this.recording.complaints.map((line) => `\n${line}`).join("");
    return `${this.recording.all.length} resources registered, the last ${last?.urn ?? "none"}; calls not answered: ${open.join(", ") || "none"}${said}`;
  }

  private monitorService(): UntypedServiceImplementation {
    return {
      supportsFeature: this.unary("supportsFeature", (request: SupportsFeatureRequest) => {
        const response = new SupportsFeatureResponse();
        response.setHassupport(FEATURES.has(request.getId()));
        return response;
      }),
      invoke: this.unary("invoke", (request: ResourceInvokeRequest) => this.invoke(request)),
      readResource: this.unary("readResource", (request: ReadResourceRequest) => this.read(request)),
      registerResource: this.unary("registerResource", (request: RegisterResourceRequest) =>
        this.register(request),
      ),
      registerResourceOutputs: this.unary(
        "registerResourceOutputs",
        (request: RegisterResourceOutputsRequest) => {
          const outputs = decodeMap(request.getOutputs()?.toJavaScript() ?? {}, this.options.programDir);
          this.recording.registeredOutputs.set(request.getUrn(), outputs);
          return new Empty();
        },
      ),
      signalAndWaitForShutdown: this.unary("signalAndWaitForShutdown", () => new Empty()),
      ...Object.fromEntries(
        [
          "getDeploymentInfo",
          "call",
          "registerStackTransform",
          "registerStackInvokeTransform",
          "registerResourceHook",
          "registerErrorHook",
          "registerPackage",
        ].map((method) => [method, this.unary(method, () => unimplemented(method))]),
      ),
    };
  }

  private engineService(): UntypedServiceImplementation {
    return {
      log: this.unary("log", (request: LogRequest) => {
        const severity = SEVERITY.get(request.getSeverity());
        // The SDK traces every call and its contents as debug lines.
        if (severity !== undefined)
          this.recording.log.push({ severity, message: request.getMessage(), urn: request.getUrn() });
        return new Empty();
      }),
      getRootResource: this.unary("getRootResource", (_request: GetRootResourceRequest) => {
        const response = new GetRootResourceResponse();
        response.setUrn(this.rootUrn);
        return response;
      }),
      setRootResource: this.unary("setRootResource", (request: SetRootResourceRequest) => {
        this.rootUrn = request.getUrn();
        return new SetRootResourceResponse();
      }),
      startDebugging: this.unary("startDebugging", () => unimplemented("startDebugging")),
      requirePulumiVersion: this.unary(
        "requirePulumiVersion",
        (_request: RequirePulumiVersionRequest) => new RequirePulumiVersionResponse(),
      ),
    };
  }

  /** A handler that records time and open calls, and turns a thrown error into a gRPC status. */
  private unary<Request, Response>(method: string, answer: (request: Request) => Response) {
    return (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>): void => {
      const started = performance.now();
      this.firstCallAt ??= started;
      this.start();
      const id = this.calls++;
      this.running.set(id, method);
      try {
        const response = answer(call.request);
        callback(null, response);
      } catch (error) {
        const { code, message } = error as Partial<ServiceError> & Error;
        if (code === undefined) this.breakDown(error as Error);
        callback({ code: code ?? status.UNAVAILABLE, details: message });
      } finally {
        this.running.delete(id);
        this.recording.durationS = (performance.now() - this.firstCallAt) / 1000;
      }
    };
  }

  private invoke(request: ResourceInvokeRequest): InvokeResponse {
    const token = request.getTok();
    const args = decodeMap(request.getArgs()?.toJavaScript() ?? {}, this.options.programDir);
    this.recording.invokes.push({ token, args, provider: request.getProvider() });
    const response = new InvokeResponse();
    response.setReturn(struct(answerInvoke(token, args, this.options.invokes)));
    return response;
  }

  private read(request: ReadResourceRequest): ReadResourceResponse {
    const { project, stack, programDir } = this.options;
    const inputs = decodeMap(request.getProperties()?.toJavaScript() ?? {}, programDir);
    const about = { type: request.getType(), name: request.getName(), parent: request.getParent() };
    this.recording.reads.push({ ...about, id: request.getId() });
    const response = new ReadResourceResponse();
    response.setUrn(urnOf(project, stack, about));
    const identity = { id: request.getId(), name: lastSegment(request.getId()) };
    response.setProperties(
      struct({
        ...inputs,
        ...computedOutputs(about.type, { ...inputs, name: identity.name }, identity, this.options.outputs),
      }),
    );
    return response;
  }

  private register(request: RegisterResourceRequest): RegisterResourceResponse {
    const { project, stack, programDir, prior } = this.options;
    if (this.failedOn !== undefined) unavailable();
    const asked = registrationOf(request, project, stack, programDir);
    refuse(asked, this.recording);
    const before = prior?.get(asked.urn);
    const provider = this.recording.get(providerUrn(asked.provider));
    const step = compare(before, asked, this.replaced.has(providerUrn(asked.provider)), provider?.inputs);
    if (step.operation === "replace") this.replaced.add(asked.urn);
    const failure = this.options.failOn?.(asked);
    if (failure !== undefined) this.shutDown(asked.urn, failure);
    const { id, outputs } = asked.custom
      ? answerTo(asked, step.operation, before, this.options)
      : { id: "", outputs: {} };
    this.recording.add({ ...asked, id, outputs, sequence: this.recording.all.length });
    const response = new RegisterResourceResponse();
    response.setUrn(asked.urn);
    response.setId(id);
    response.setObject(struct(outputs));
    return response;
  }

  private shutDown(urn: string, message: string): never {
    this.recording.log.push({ severity: "error", message, urn });
    this.failedOn = message;
    return unavailable();
  }
}

function unimplemented(method: string): never {
  throw Object.assign(new Error(`The engine stub does not implement ${method}.`), {
    code: status.UNIMPLEMENTED,
  });
}

function unavailable(): never {
  throw Object.assign(new Error("resource monitor shut down"), { code: status.UNAVAILABLE });
}

function struct(map: PropertyMap): Struct {
  return Struct.fromJavaScript(encodeMap(map));
}

const lastSegment = (id: string): string => id.split("/").at(-1) ?? id;
