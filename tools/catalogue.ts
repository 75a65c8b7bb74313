/** The tools that tests run for real: what each is, its pinned version, its sources, how it is built and what that costs. */
import { symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { run, goBuild, type BuildContext } from "./go-build";
import { prepareProviderSources } from "./provider-sources";

/** How a program of a tool is recognised when the user has it already. */
export interface Probe {
  /** Arguments that make the program print its version. Without them the program is only taken from `file`. */
  versionArgs?: string[];
  /** Version to look for; default: the tool's version. */
  version?: string;
  /** Place outside PATH where a right version lies, when its path itself says the version. */
  file?: () => string | undefined;
}

/** One tool of the catalogue. */
export interface Tool {
  name: ToolName;
  summary: string;
  version: string;
  /** Programs in the finished folder. */
  programs: Record<string, Probe>;
  /** Files and folders whose content decides the result. */
  sources: string[];
  /** What must be on the machine to build it. */
  needs: "go" | "python3";
  /** Measured on two cores with empty caches. `coldS`: wall time; `workMb`: space during the build; `keepMb`: result. */
  cost: { coldS: number; workMb: number; keepMb: number };
  /** Leaves the programs in `context.outDir`. */
  build(context: BuildContext): Promise<void>;
}

/** Names as `--tool` takes them. */
export type ToolName =
  "pulumi-cli" | "pulumi-provider" | "kube-testbed" | "prometheus" | "triton" | "actionlint";

/** Versions that are tested together; the npm packages in package.json carry the same ones. */
export const versions = {
  pulumi: "3.248.0",
  kubernetesProvider: "4.34.2",
  kubernetes: "1.36.3",
  etcd: "3.6.8",
  kwok: "0.8.0",
  prometheus: "3.13.5",
  pytriton: "0.7.0",
  actionlint: "1.7.12",
} as const;

const source = (...parts: string[]): string => join(__dirname, ...parts);
const [kubernetesMajor, kubernetesMinor] = versions.kubernetes.split(".");
const kubernetesPrograms = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

const pulumiCli: Tool = {
  name: "pulumi-cli",
  summary: "the Pulumi command and engine",
  version: versions.pulumi,
  programs: { pulumi: { versionArgs: ["version"] } },
  sources: [source("go", "pulumi-cli")],
  needs: "go",
  cost: { coldS: 345, workMb: 3000, keepMb: 112 },
  build: (context) =>
    goBuild(context, {
      // The published binaries set the version the same way; without it the Automation API refuses to run.
      variables: { "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": `v${versions.pulumi}` },
      packagePath: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
      program: "pulumi",
    }),
};

const pulumiProvider: Tool = {
  name: "pulumi-provider",
  summary: "Pulumi's Kubernetes provider",
  version: versions.kubernetesProvider,
  programs: {
    "pulumi-resource-kubernetes": {
      file: () =>
        join(
          process.env.PULUMI_HOME ?? join(homedir(), ".pulumi"),
          "plugins",
          `resource-kubernetes-v${versions.kubernetesProvider}`,
          "pulumi-resource-kubernetes",
        ),
    },
  },
  sources: [source("go", "pulumi-provider"), source("provider-sources.ts")],
  needs: "go",
  cost: { coldS: 190, workMb: 2500, keepMb: 92 },
  build: async (context) => {
    await prepareProviderSources(context, versions.kubernetesProvider);
    await goBuild(context, {
      variables: { "main.version": versions.kubernetesProvider },
      packagePath: "./cmd/pulumi-resource-kubernetes",
      program: "pulumi-resource-kubernetes",
    });
  },
};

const kubeTestbed: Tool = {
  name: "kube-testbed",
  summary: "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and kubectl",
  version: versions.kubernetes,
  programs: {
    etcd: { versionArgs: ["--version"], version: versions.etcd },
    ...Object.fromEntries(kubernetesPrograms.map((name) => [name, { versionArgs: ["--version"] }])),
    kubectl: { versionArgs: ["version", "--client"] },
    kwok: { versionArgs: ["--version"], version: versions.kwok },
  },
  sources: [source("go", "kube-testbed")],
  needs: "go",
  cost: { coldS: 405, workMb: 3800, keepMb: 139 },
  build: async (context) => {
    const version = "k8s.io/component-base/version";
    await goBuild(context, {
      variables: {
        [`${version}.gitVersion`]: `v${versions.kubernetes}`,
        [`${version}.gitMajor`]: String(kubernetesMajor),
        [`${version}.gitMinor`]: String(kubernetesMinor),
      },
      packagePath: ".",
      program: "kube-testbed",
    });
    for (const program of Object.keys(kubeTestbed.programs))
      symlinkSync("kube-testbed", join(context.outDir, program));
  },
};

const prometheus: Tool = {
  name: "prometheus",
  summary: "Prometheus and promtool, without the web interface",
  version: versions.prometheus,
  programs: { prometheus: { versionArgs: ["--version"] }, promtool: { versionArgs: ["--version"] } },
  sources: [source("go", "prometheus")],
  needs: "go",
  cost: { coldS: 300, workMb: 3000, keepMb: 250 },
  build: async (context) => {
    for (const program of ["prometheus", "promtool"]) {
      await goBuild(context, {
        // Kubernetes, file and HTTP discovery only: the other two dozen pull every cloud's SDK in.
        tags: ["remove_all_sd", "enable_kubernetes_sd"],
        variables: { "github.com/prometheus/common/version.Version": versions.prometheus },
        packagePath: `github.com/prometheus/prometheus/cmd/${program}`,
        program,
      });
    }
  },
};

const triton: Tool = {
  name: "triton",
  summary: "Triton Inference Server 2.51.0 (24.10) from the nvidia-pytriton wheel; runs without a GPU",
  version: versions.pytriton,
  programs: { "pytriton/tritonserver/bin/tritonserver": {} },
  sources: [source("triton", "requirements.txt")],
  needs: "python3",
  cost: { coldS: 10, workMb: 60, keepMb: 144 },
  build: async (context) => {
    // The checksum in the requirements file is what pins it; no dependency is needed to run the server itself.
    await run(context, "python3", [
      ...[
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--require-hashes",
        "--disable-pip-version-check",
      ],
      ...["--target", context.outDir, "--requirement", source("triton", "requirements.txt")],
    ]);
  },
};

const actionlint: Tool = {
  name: "actionlint",
  summary: "the linter of GitHub workflows",
  version: versions.actionlint,
  programs: { actionlint: { versionArgs: ["-version"] } },
  sources: [source("go", "actionlint")],
  needs: "go",
  cost: { coldS: 70, workMb: 200, keepMb: 5 },
  build: (context) =>
    goBuild(context, {
      variables: { "github.com/rhysd/actionlint.version": versions.actionlint },
      packagePath: "github.com/rhysd/actionlint/cmd/actionlint",
      program: "actionlint",
    }),
};

/** All tools, in the order in which they are built. */
export const tools: readonly Tool[] = [
  kubeTestbed,
  pulumiCli,
  pulumiProvider,
  prometheus,
  triton,
  actionlint,
];

/**
 * A tool by name.
 * @throws Error with the known names.
 */
export function toolNamed(name: string): Tool {
  const tool = tools.find((candidate) => candidate.name === name);
  if (!tool)
    throw new Error(`Unknown tool "${name}". Known: ${tools.map((known) => known.name).join(", ")}.`);
  return tool;
}
