/**
 * Language host for TypeScript programs: what `pulumi-language-nodejs` is to the engine. It is a program of its own that the
 * CLI starts; the suite puts it beside a CLI that was built from source, because the published one exists only as a download.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import { LanguageRuntimeService } from "@pulumi/pulumi/proto/language_grpc_pb";
import * as proto from "@pulumi/pulumi/proto/language_pb";
import { PluginInfo } from "@pulumi/pulumi/proto/plugin_pb";
import { Empty } from "google-protobuf/google/protobuf/empty_pb";

type Unary<Q, A> = (call: grpc.ServerUnaryCall<Q, A>, done: grpc.sendUnaryData<A>) => void;

let engineAddress = process.argv.slice(2).findLast((argument) => !argument.startsWith("-")) ?? "";
const children = new Set<ChildProcess>();

/** A script of @pulumi/pulumi as the program's own folder resolves it. */
const sdkScript = (programDir: string, name: string): string =>
  createRequire(join(programDir, "index.js")).resolve(`@pulumi/pulumi/cmd/${name}`);

interface RuntimeOptions {
  nodeargs?: string;
  typescript?: boolean;
}

function optionsOf(info: proto.ProgramInfo | undefined): RuntimeOptions {
  return info?.getOptions()?.toJavaScript() ?? {};
}

function start(
  args: string[],
  options: RuntimeOptions,
  cwd: string,
  env: NodeJS.ProcessEnv,
  pipe: boolean,
): ChildProcess {
  const nodeArgs = (options.nodeargs ?? "").split(/\s+/).filter(Boolean);
  const child = spawn(process.execPath, [...nodeArgs, ...args], {
    cwd,
    env: { ...process.env, ...env, PULUMI_NODEJS_TYPESCRIPT: String(options.typescript ?? true) },
    stdio: ["ignore", pipe ? "pipe" : "inherit", pipe ? "pipe" : "inherit"],
  });
  children.add(child);
  child.on("exit", () => children.delete(child));
  return child;
}

const run: Unary<proto.RunRequest, proto.RunResponse> = (call, done) => {
  const { request } = call;
  const info = request.getInfo();
  const programDir = info?.getProgramDirectory() ?? request.getPwd();
  const flags: Record<string, string | undefined> = {
    monitor: request.getMonitorAddress(),
    engine: engineAddress,
    organization: request.getOrganization(),
    project: request.getProject(),
    "root-directory": info?.getRootDirectory(),
    stack: request.getStack(),
    pwd: request.getPwd(),
    parallel: String(request.getParallel()),
  };
  const args = Object.entries(flags).flatMap(([name, value]) => (value ? [`--${name}`, value] : []));
  if (request.getDryrun()) args.push("--dry-run");
  const env = {
    PULUMI_CONFIG: JSON.stringify(Object.fromEntries(request.getConfigMap().getEntryList())),
    PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(request.getConfigsecretkeysList()),
  };
  const program = [
    sdkScript(programDir, "run"),
    ...args,
    info?.getEntryPoint() ?? ".",
    ...request.getArgsList(),
  ];
  const child = start(program, optionsOf(info), request.getPwd(), env, false);
  child.on("error", (error) => done({ code: grpc.status.INTERNAL, details: error.message }));
  child.on("exit", (code, signal) => {
    const answer = new proto.RunResponse();
    // 32: the program has failed and has already said why.
    if (code === 32) answer.setBail(true);
    else if (code !== 0)
      answer.setError(signal ? `the program was ended by ${signal}` : `the program ended with code ${code}`);
    done(null, answer);
  });
};

function runPlugin(call: grpc.ServerWritableStream<proto.RunPluginRequest, proto.RunPluginResponse>): void {
  const { request } = call;
  const info = request.getInfo();
  const programDir = info?.getProgramDirectory() ?? request.getPwd();
  const isPolicy = request.getKind() === "analyzer";
  const args = isPolicy
    ? [sdkScript(programDir, "run-policy-pack"), engineAddress, programDir]
    : [sdkScript(programDir, "run-plugin"), programDir, ...request.getArgsList()];
  const env = Object.fromEntries(
    request
      .getEnvList()
      .map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
  const child = start(args, optionsOf(info), isPolicy ? programDir : request.getPwd(), env, true);
  child.stdout?.on("data", (chunk: Buffer) => call.write(new proto.RunPluginResponse().setStdout(chunk)));
  child.stderr?.on("data", (chunk: Buffer) => call.write(new proto.RunPluginResponse().setStderr(chunk)));
  child.on("close", (code) => {
    call.write(new proto.RunPluginResponse().setExitcode(code ?? 1));
    call.end();
  });
  call.on("cancelled", () => child.kill());
}

const answered =
  <A>(answer: () => A): Unary<unknown, A> =>
  (_call, done) =>
    done(null, answer());

const served: Record<string, unknown> = {
  handshake: ((call, done) => {
    engineAddress = call.request.getEngineAddress() || engineAddress;
    done(null, new proto.LanguageHandshakeResponse());
  }) satisfies Unary<proto.LanguageHandshakeRequest, proto.LanguageHandshakeResponse>,
  getPluginInfo: answered(() => new PluginInfo().setVersion("0.0.1")),
  // The suite puts every plugin in place itself; nothing is to be looked up.
  getRequiredPlugins: answered(() => new proto.GetRequiredPluginsResponse()),
  getRequiredPackages: answered(() => new proto.GetRequiredPackagesResponse()),
  getProgramDependencies: answered(() => new proto.GetProgramDependenciesResponse()),
  about: answered(() =>
    new proto.AboutResponse().setExecutable(process.execPath).setVersion(process.version),
  ),
  installDependencies: (call: grpc.ServerWritableStream<unknown, unknown>) => call.end(),
  run,
  runPlugin,
  cancel: answered(() => {
    for (const child of children) child.kill("SIGINT");
    return new Empty();
  }),
};

const refuse = (_call: unknown, done: grpc.sendUnaryData<unknown>): void =>
  done({ code: grpc.status.UNIMPLEMENTED, details: "not needed by the suite" });
const server = new grpc.Server({ "grpc.max_receive_message_length": 256 << 20 });
server.addService(
  LanguageRuntimeService,
  Object.fromEntries(
    Object.keys(LanguageRuntimeService).map((name) => [name, served[name] ?? refuse]),
  ) as grpc.UntypedServiceImplementation,
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  process.stdout.write(`${port}\n`);
});
function end(): never {
  for (const child of children) child.kill("SIGTERM");
  process.exit(0);
}
// The engine can be killed without a word; then this process has another parent.
const engine = process.ppid;
setInterval(() => {
  if (process.ppid !== engine) end();
}, 500).unref();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, end);
