/** `npm run test:python`: lint, types and tests of the convert package, in an environment of their own. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { PythonError, pythonVariables, pythonWith } from "./python-environment";

const project = join(__dirname, "..");
const folders = ["model-repo/convert", "test/model-repo/convert"];
const settings = "model-repo/convert/pyproject.toml";

/** Words after the command go to pytest, e.g. a test file, or `--counts=FILE`. */
async function main(words: readonly string[]): Promise<number> {
  const python = await pythonWith("test", console.log);
  const steps: string[][] = [
    ["ruff", "check", "--no-cache", "--config", settings, ...folders],
    ["ruff", "format", "--no-cache", "--check", "--config", settings, ...folders],
    ["mypy", "--config-file", settings, "--cache-dir", join(project, "node_modules/.cache/mypy"), ...folders],
    ["pytest", "-q", "-p", "no:cacheprovider", "--config-file", settings, "--rootdir", project, ...words],
  ];
  let failed = 0;
  for (const [tool = "", ...rest] of steps) {
    const env = { ...pythonVariables(), MYPYPATH: join(project, "model-repo") };
    const { status, error } = spawnSync(python, ["-m", tool, ...rest], {
      cwd: project,
      stdio: "inherit",
      env,
    });
    if (error) throw error;
    if (status !== 0) failed += 1;
  }
  return failed === 0 ? 0 : 1;
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    console.error(error instanceof PythonError ? `test:python: ${error.message}` : error);
    process.exitCode = error instanceof PythonError ? 2 : 1;
  },
);
