/** The project's GitHub workflows: safe, minimal, and in step with the rest of the repository. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAction, parseWorkflow, stepProblems, workflowProblems, type Workflow } from "./workflow-rules";

const root = join(__dirname, "../..");
const folder = join(root, ".github/workflows");
const texts = Object.fromEntries(
  readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), "utf8")]),
);
const actionText = readFileSync(join(root, ".github/actions/pulumi/action.yml"), "utf8");
const packageJson = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  scripts: Record<string, string>;
  dependencies: Record<string, string>;
};
const workflow = (file: string): Workflow => parseWorkflow(texts[file] ?? "");
const jobsOf = (file: string) => workflow(file).jobs ?? {};

describe("all workflows", () => {
  it("are the three", () => expect(Object.keys(texts).sort()).toEqual(["preview.yml", "test.yml", "up.yml"]));

  it.each(Object.keys(texts))("%s breaks no rule", (file) => {
    expect(workflowProblems(texts[file] ?? "")).toEqual([]);
  });

  it("call npm scripts that exist", () => {
    const called = [...Object.values(texts), actionText].flatMap((text) =>
      [...text.matchAll(/run: npm (?:run )?(\S+)/g)].map((match) => match[1] ?? ""),
    );
    expect(called.length).toBeGreaterThan(5);
    for (const script of called.filter((name) => name !== "ci"))
      expect(packageJson.scripts).toHaveProperty([script]);
  });

  it("cover every stack file", () => {
    const stacks = readdirSync(root).flatMap((file) => /^Pulumi\.(\w+)\.yaml$/.exec(file)?.[1] ?? []);
    expect([...(jobsOf("preview.yml").preview?.strategy?.matrix?.stack ?? [])].sort()).toEqual(stacks.sort());
    expect(Object.keys(jobsOf("up.yml")).sort()).toEqual(stacks.sort());
  });
});

describe("the shared action", () => {
  const steps = parseAction(actionText).runs?.steps ?? [];
  const pulumi = steps.find(({ uses }) => uses?.startsWith("pulumi/actions@"))?.with ?? {};

  it("breaks no rule", () => expect(stepProblems(actionText, steps)).toEqual([]));

  it("runs the CLI that the tests run, with the policy pack and without showing outputs", () => {
    expect(pulumi).toMatchObject({
      "pulumi-version": packageJson.dependencies["@pulumi/pulumi"],
      policyPacks: "policy",
      "suppress-outputs": true,
    });
  });

  it("uses no key file", () => {
    expect(actionText).not.toMatch(/credentials_json|service_account_key/);
    expect(steps.some(({ with: inputs }) => inputs?.workload_identity_provider !== undefined)).toBe(true);
  });

  it("runs no install script of a dependency", () => expect(actionText).toContain("npm ci --ignore-scripts"));
});

describe("test.yml", () => {
  it("runs for pull requests, forks included, with nothing but a read-only token", () => {
    expect(Object.keys(workflow("test.yml").on ?? {})).toContain("pull_request");
    for (const job of Object.values(jobsOf("test.yml"))) {
      expect(job.permissions).toBeUndefined();
      expect(job.environment).toBeUndefined();
      expect(job.if).toBeUndefined();
    }
  });

  it("tests on the oldest supported Node and on the newest", () => {
    expect(jobsOf("test.yml").checks?.strategy?.matrix?.node).toEqual(["20", "24"]);
  });
});

describe("up.yml", () => {
  it("runs on main alone, each stack in the environment of its name, and is never cut off", () => {
    expect(workflow("up.yml").on).toEqual({ push: { branches: ["main"] }, workflow_dispatch: null });
    for (const [stack, job] of Object.entries(jobsOf("up.yml"))) {
      expect(job.environment).toBe(stack);
      expect(job.concurrency).toEqual({ group: `up-${stack}`, "cancel-in-progress": false });
      expect(job.steps?.at(-1)?.with).toMatchObject({ command: "up", stack });
    }
  });

  it("brings up dev before prod", () => {
    expect(jobsOf("up.yml").dev?.if).toContain("github.ref == 'refs/heads/main'");
    expect(jobsOf("up.yml").prod?.needs).toBe("dev");
  });
});

describe("the rules themselves", () => {
  const SHA = "de0fac2e4500dabe0009e67214ff5f5447ce83dd";
  const good = [
    "on: { pull_request: }",
    "permissions: { contents: read }",
    "jobs:",
    "  a:",
    "    runs-on: ubuntu-24.04",
    "    timeout-minutes: 5",
    "    steps:",
    `      - uses: actions/checkout@${SHA} # v6.0.2`,
    "        with: { persist-credentials: false }",
    "      - run: npm test",
  ].join("\n");
  const identity = "    timeout-minutes: 5\n    permissions: { id-token: write }";

  it("accept a good workflow", () => expect(workflowProblems(good)).toEqual([]));

  const cases: [string, string, string, string][] = [
    [
      "runs of strangers with rights",
      "pull_request:",
      "pull_request_target:",
      "pull_request_target runs with the rights of main on what strangers send",
    ],
    [
      "wide permissions",
      "{ contents: read }",
      "write-all",
      "top-level permissions must be contents: read alone",
    ],
    [
      "no permissions",
      "permissions: { contents: read }",
      "",
      "top-level permissions must be contents: read alone",
    ],
    [
      "a tag",
      `@${SHA} # v6.0.2`,
      "@v6",
      "actions/checkout@v6 is not pinned to a commit with its version beside it",
    ],
    [
      "a commit without version",
      " # v6.0.2",
      "",
      `actions/checkout@${SHA} is not pinned to a commit with its version beside it`,
    ],
    ["a kept token", "persist-credentials: false", "fetch-depth: 1", "checkout leaves its token on disk"],
    ["no limit", "    timeout-minutes: 5\n", "", "a: has no time limit"],
    [
      "a moving runner",
      "ubuntu-24.04",
      "ubuntu-latest",
      "a: runs on ubuntu-latest, which changes without notice",
    ],
    [
      "an injection",
      "npm test",
      "echo ${{ github.head_ref }}",
      "an expression is pasted into a script: echo ${{ github.head_ref }}",
    ],
    [
      "a secret",
      "npm test",
      "npm test\n        env: { TOKEN: '${{ secrets.DEPLOY }}' }",
      "reads a secret in a run for pull requests",
    ],
    [
      "an unneeded permission",
      "    timeout-minutes: 5",
      "    timeout-minutes: 5\n    permissions: { contents: write }",
      "a: permission contents: write is not needed",
    ],
  ];
  it.each(cases)("find %s", (_name, from, to, problem) => {
    expect(good).toContain(from);
    expect(workflowProblems(good.replace(from, to))).toEqual([problem]);
  });

  it("find an identity for anybody", () => {
    expect(workflowProblems(good.replace("    timeout-minutes: 5", identity))).toEqual([
      "a: has an identity that is bound to no environment",
      "a: may run twice at once",
      "a: gives an identity to forks",
    ]);
  });
});
