/** docs/bootstrap.md names what the workflows and the program really use. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { plain } from "../stack-engine/harness";
import { programDir, STACKS, up } from "../stack-engine/real-stack";
import { parseWorkflow } from "./workflow-rules";

const document = readFileSync(join(programDir, "docs/bootstrap.md"), "utf8");
const folder = join(programDir, ".github/workflows");
const workflows = readdirSync(folder).map((file) => readFileSync(join(folder, file), "utf8"));

describe("docs/bootstrap.md", () => {
  it("says how to set every variable and environment of the workflows", () => {
    const variables = workflows.flatMap((text) =>
      [...text.matchAll(/vars\.(\w+)/g)].map((match) => match[1] ?? ""),
    );
    expect(new Set(variables).size).toBe(6);
    for (const variable of variables) expect(document).toContain(`\`${variable}\``);
    const environments = workflows
      .flatMap((text) =>
        Object.values(parseWorkflow(text).jobs ?? {}).flatMap(({ environment }) => environment ?? []),
      )
      .flatMap((name) =>
        name.includes("matrix.stack")
          ? STACKS.map((stack) => name.replace("${{ matrix.stack }}", stack))
          : [name],
      );
    expect([...environments].sort()).toEqual(["dev", "preview-dev", "preview-prod", "prod"]);
    for (const environment of environments)
      expect(document).toMatch(new RegExp(`^\\| \`${environment}\` \\|`, "m"));
  });

  it("has a role for every kind of Google resource, and names none that is not made", async () => {
    const recording = await up("dev", { budget: 100, billingAccount: "ABCDEF-012345-6789AB" });
    const made = recording.all.flatMap(({ type }) => /^gcp:(\w+\/\w+):/.exec(type)?.[1] ?? []);
    const named = [...document.matchAll(/`([a-z]+\/[a-zA-Z]+)`/g)].map((match) => match[1] ?? "");
    expect([...new Set(named)].filter((name) => !name.startsWith("roles/")).sort()).toEqual(
      [...new Set(made)].sort(),
    );
  });

  it("limits the granting account to the roles that the stack grants", async () => {
    const granted = (await up("dev"))
      .ofType("gcp:projects/iAMMember:IAMMember")
      .map(({ inputs }) => plain(inputs.role) as string);
    const condition = /hasOnly\(\[([^\]]*)\]/.exec(document)?.[1] ?? "";
    expect([...condition.matchAll(/'([^']+)'/g)].map((match) => match[1]).sort()).toEqual(
      [...new Set(granted)].sort(),
    );
  });

  it("links to headings that exist", () => {
    const headings = [...document.matchAll(/^#+ (.*)$/gm)].map((match) =>
      (match[1] ?? "")
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, "")
        .replaceAll(" ", "-"),
    );
    for (const [, anchor] of document.matchAll(/\]\(#([^)]+)\)/g)) expect(headings).toContain(anchor);
  });
});
