/** The GitHub workflows under actionlint: syntax, expressions, inputs of actions, scripts. test/workflows has our own rules. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { requireTool } from "../../tools/cache";
import { toolNamed } from "../../tools/catalogue";
import { checkout } from "./environment";

const actionlint = requireTool(toolNamed("actionlint")).programs.actionlint ?? "";

it("finds nothing in the workflows", () => {
  const run = spawnSync(actionlint, ["-no-color", "-verbose"], { cwd: checkout, encoding: "utf8" });
  expect(run.stdout).toBe("");
  expect(run.status).toBe(0);
  expect(run.stderr).toMatch(/Found 0 errors in 3 files|3 files/);
});

it("would find a misspelt expression", () => {
  const workflow =
    "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ github.evnt }}\n";
  const run = spawnSync(actionlint, ["-no-color", "-"], { input: workflow, encoding: "utf8" });
  expect(run.status).toBe(1);
  expect(run.stdout).toContain('property "evnt" is not defined');
});
