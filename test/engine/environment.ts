/**
 * Everything that a test of the stack needs: a pretended Google project, its clusters, the real Pulumi CLI with the real
 * Kubernetes provider, and a folder in which stacks of the real program live. The program itself is not told that it is
 * tested: Google answers with loopback addresses, and the login plugin on PATH gives the token of the loopback clusters.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { spawn, type ChildProcess } from "node:child_process";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { LocalWorkspace, PulumiCommand, type ConfigMap, type Stack } from "@pulumi/pulumi/automation";
import ts from "typescript";
import { parse, stringify } from "yaml";
import { requireTool } from "../../tools/cache";
import { toolNamed, versions } from "../../tools/catalogue";
import { tokenOf, type Forward } from "./cluster/cluster";
import type { KubeApi } from "./cluster/kube-api";
import { Gke } from "./cloud/gke";
import { convertModels, googleProvider } from "./cloud/google";
import { dockerBuildProvider, randomProvider } from "./cloud/others";
import { StandInProvider } from "./cloud/provider";
import { World } from "./cloud/world";
import { repositoryVariants, up } from "./operations";

/** The checkout. */
export const checkout = resolve(__dirname, "..", "..");

function writeProgram(file: string, text: string): void {
  writeFileSync(file, text);
  chmodSync(file, 0o755);
}

/** A CLI built from source comes without a language host; a published one brings its own. */
function placeCli(bin: string): void {
  const cli = requireTool(toolNamed("pulumi-cli"));
  const pulumi = cli.programs.pulumi!;
  if (cli.from === "installed") {
    symlinkSync(pulumi, join(bin, "pulumi"));
    return;
  }
  // Copied, not linked: the CLI looks for the host beside its real path.
  copyFileSync(pulumi, join(bin, "pulumi"));
  const source = readFileSync(join(__dirname, "host", "language-host.ts"), "utf8");
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: {
      module: ts.ModuleKind.CommonJS,
      target: ts.ScriptTarget.ES2022,
      esModuleInterop: true,
    },
  });
  const modules = join(checkout, "node_modules");
  symlinkSync(modules, join(bin, "..", "node_modules"));
  writeProgram(join(bin, "pulumi-language-nodejs"), `#!/usr/bin/env node\n${outputText}`);
}

function placeKubernetesProvider(pulumiHome: string): void {
  const version = versions.kubernetesProvider;
  const folder = join(pulumiHome, "plugins", `resource-kubernetes-v${version}`);
  mkdirSync(folder, { recursive: true });
  const { programs } = requireTool(toolNamed("pulumi-provider"));
  symlinkSync(programs["pulumi-resource-kubernetes"]!, join(folder, "pulumi-resource-kubernetes"));
}

/** What came of a program. */
export interface Outcome {
  code: number | null;
  /** Standard output and standard error together. */
  text: string;
}

async function outcome(child: ChildProcess): Promise<Outcome> {
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) =>
    child.on("error", reject).on("close", resolve),
  );
  return { code, text };
}

/** A pretended Google project with the means to deploy stacks to it. */
export class Environment {
  private readonly providers: StandInProvider[] = [];
  private debugProviders = "";

  private constructor(
    readonly dir: string,
    readonly world: World,
    readonly gke: Gke,
  ) {}

  /** Client of the cluster's API server, as its administrator. */
  get api(): KubeApi {
    return this.gke.cluster.api;
  }

  /** @param forwards where port-forwards to pods of future clusters lead */
  static async start(forwards: readonly Forward[] = []): Promise<Environment> {
    const dir = mkdtempSync(join(tmpdir(), "engine-"));
    const world = new World(join(dir, "cloud.json"));
    const environment = new Environment(dir, world, new Gke(world, dir, forwards));
    const bin = join(dir, "cli", "bin");
    mkdirSync(bin, { recursive: true });
    placeCli(bin);
    placeKubernetesProvider(join(dir, "home"));
    const credential = {
      ...{ apiVersion: "client.authentication.k8s.io/v1beta1", kind: "ExecCredential" },
      status: { token: tokenOf(join(dir, "pki")) },
    };
    writeProgram(join(bin, "gke-gcloud-auth-plugin"), `#!/bin/sh\necho '${JSON.stringify(credential)}'\n`);
    for (const definition of [googleProvider(environment.gke), randomProvider, dockerBuildProvider]) {
      environment.providers.push(new StandInProvider(definition, world));
    }
    environment.debugProviders = (
      await Promise.all(environment.providers.map((provider) => provider.start()))
    ).join(",");
    return environment;
  }

  /** Environment of the CLI. */
  get cliEnv(): Record<string, string> {
    return {
      PATH: [join(this.dir, "cli", "bin"), process.env.PATH ?? ""].join(delimiter),
      PULUMI_HOME: join(this.dir, "home"),
      PULUMI_BACKEND_URL: `file://${join(this.dir, "state")}`,
      PULUMI_CONFIG_PASSPHRASE: "only for tests",
      PULUMI_DEBUG_PROVIDERS: this.debugProviders,
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      // The type check belongs to `npm run typecheck`; here it would be most of the time.
      PULUMI_NODEJS_TRANSPILE_ONLY: "true",
      // The SDK keeps a stack trace of every promise, mapped back to TypeScript: a fifth of the time of an update.
      NODE_OPTIONS: "--stack-trace-limit=0",
      // Stands for the public certificate authorities, which sign the DNS endpoint's certificate.
      SSL_CERT_FILE: join(this.dir, "pki", "issuer.pem"),
    };
  }

  /** Path of the CLI. */
  get pulumi(): string {
    return join(this.dir, "cli", "bin", "pulumi");
  }

  /**
   * A folder whose Pulumi.yaml runs a program of the checkout, with a copy of its stack files: tests change config there.
   * @param program folder of the program; default: the stack
   */
  project(program: string = checkout): string {
    const folder = join(this.dir, "project");
    if (existsSync(folder)) return folder;
    mkdirSync(folder);
    mkdirSync(join(this.dir, "state"), { recursive: true });
    const definition = parse(readFileSync(join(program, "Pulumi.yaml"), "utf8")) as Record<string, unknown>;
    writeFileSync(join(folder, "Pulumi.yaml"), stringify({ ...definition, main: program }));
    for (const stack of ["dev", "prod"]) {
      const file = join(program, `Pulumi.${stack}.yaml`);
      if (existsSync(file)) copyFileSync(file, join(folder, `Pulumi.${stack}.yaml`));
    }
    return folder;
  }

  /** Selects a stack, created if needed, with these config values on top of its file. */
  async stack(name: string, config: ConfigMap = {}, program?: string): Promise<Stack> {
    const stack = await LocalWorkspace.createOrSelectStack(
      { stackName: name, workDir: this.project(program) },
      {
        envVars: this.cliEnv,
        pulumiHome: join(this.dir, "home"),
        pulumiCommand: await PulumiCommand.get({ root: join(this.dir, "cli") }),
      },
    );
    await stack.setAllConfig(config);
    return stack;
  }

  /** Brings a stack up whose file or config says `asleep`, converts its models, and wakes it, as a person does. */
  async wake(stack: Stack): Promise<void> {
    await up(stack);
    convertModels(this.world, await repositoryVariants(stack));
    await stack.setConfig("triton-slo-stack:asleep", { value: "false" });
    await up(stack);
  }

  /** Starts the CLI in the project's folder, as a person does. */
  cli(args: readonly string[]): ChildProcess {
    return spawn(this.pulumi, args, {
      ...{ cwd: this.project(), stdio: ["ignore", "pipe", "pipe"] },
      env: { ...process.env, ...this.cliEnv },
    });
  }

  /** Runs the CLI in the project's folder and gives its exit code and all that it printed. */
  run(...args: string[]): Promise<Outcome> {
    return outcome(this.cli(args));
  }

  /** Runs a script of the project in the project's folder and gives its exit code and all that it printed. */
  async script(file: string, args: readonly string[]): Promise<Outcome> {
    const child = spawn(
      process.execPath,
      ["--import", pathToFileURL(require.resolve("tsx")).href, join(checkout, file), ...args],
      {
        ...{ cwd: this.project(), stdio: ["ignore", "pipe", "pipe"] },
        // The second is for Node what SSL_CERT_FILE is for Go.
        env: { ...process.env, ...this.cliEnv, NODE_EXTRA_CA_CERTS: this.cliEnv.SSL_CERT_FILE },
      },
    );
    return outcome(child);
  }

  /** Command lines of programs that a CLI of this environment has started and that still run. */
  leftovers(): string[] {
    return readdirSync("/proc").flatMap((pid) => {
      try {
        const variables = readFileSync(`/proc/${pid}/environ`, "utf8");
        if (!variables.includes(`PULUMI_HOME=${join(this.dir, "home")}`)) return [];
        return [readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")];
      } catch {
        return [];
      }
    });
  }

  /** Ends clusters and providers and removes all files. */
  async close(): Promise<void> {
    await this.gke.close();
    for (const provider of this.providers) provider.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
