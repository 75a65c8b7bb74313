/** Commands given something that they cannot use, as processes: they end at once, with code 2 and what to do. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";

const checkout = resolve(__dirname, "..", "..");
const loader = pathToFileURL(require.resolve("tsx")).href;
const TIMEOUT_MS = 60_000;

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "refusals-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs a command in an empty folder. @returns what it says on standard error; nothing was written */
async function refused(command: string, words: readonly string[], cwd = folder()): Promise<string> {
  const before = readdirSync(cwd);
  const { code, text } = await new Promise<{ code: unknown; text: string }>((done) => {
    const program = ["--import", loader, join(checkout, `scripts/${command}.ts`), ...words];
    const child = execFile(process.execPath, program, { cwd, timeout: TIMEOUT_MS }, (error, _out, err) =>
      done({ code: error === null ? 0 : (error.code ?? error.signal), text: err }),
    );
    child.stdin?.end();
  });
  expect(code, text).toBe(2);
  expect(text).not.toMatch(/unexpected error|\n +at /);
  expect(readdirSync(cwd)).toEqual(before);
  return text;
}

it.each<[string, string, RegExp]>([
  ["tune", "--images nowhere --variants original", /^tune: image folder nowhere cannot be read/],
  ["tune", "--held-out nowhere", /^tune: image folder nowhere cannot be read/],
  [
    "tune",
    "--resume",
    /^tune: there is no unfinished sweep in results\/ to go on with: name its folder with --out DIR/,
  ],
  [
    "tune",
    "--triton 127.0.0.1:1",
    /^tune: 127\.0\.0\.1:1 does not answer as a Triton \(connect ECONNREFUSED 127\.0\.0\.1:1\): give the host/,
  ],
  // Node's own recursive mkdir would never end here.
  [
    "tune",
    "--out /proc/none/run --variants original --no-accuracy",
    /^tune: cannot make the folder \/proc\/none\/run: no folder can be made in \/proc .*Choose a writable folder with --out DIR\.\n$/m,
  ],
  [
    "convert",
    "--local --out /proc/none/models",
    /^convert: cannot make the folder \/proc\/none: .*--out DIR\.\n$/,
  ],
  [
    "explain",
    "--stack nowhere",
    /^explain: the stack cannot be looked at: (the pulumi command is needed: install it|error: )/,
  ],
  ["apply", "", /^apply: --stack is missing: give it, e\.g\. --stack dev\n$/],
  ["apply", "--stak dev", /^apply: unknown option '--stak'\s+\(Did you mean --stack\?\)\. See --help\.\n$/],
  [
    "verify",
    "nowhere --stack dev",
    /^verify: nowhere\/result\.json does not exist: there is no folder nowhere; name one of results\/\n$/,
  ],
  [
    "replay",
    "nowhere",
    /^replay: nowhere\/result\.json does not exist: there is no folder nowhere; name one of results\/\n$/,
  ],
  ["compare", "nowhere", /^compare: missing required argument 'AFTER'\. See --help\.\n$/],
])("%s %s", async (command, words, message) => {
  expect(await refused(command, words.split(" ").filter(Boolean))).toMatch(message);
});

it("a folder that is not a finished sweep's says what it is", async () => {
  const here = folder();
  mkdirSync(join(here, "other"));
  mkdirSync(join(here, "begun"));
  writeFileSync(join(here, "begun", "points.jsonl"), "");
  expect(await refused("verify", ["other", "--stack", "dev"], here)).toMatch(
    /other\/result\.json does not exist: it is no results folder; name one of results\//,
  );
  expect(await refused("verify", ["begun", "--stack", "dev"], here)).toMatch(
    /its sweep has not come so far; npm run tune -- --out begun --resume goes on with it/,
  );
  writeFileSync(join(here, "begun", "result.json"), '{"schemaVersion": 99,\n "x":');
  expect(await refused("verify", ["begun", "--stack", "dev"], here)).toMatch(
    /^verify: begun\/result\.json is not a result of this version: [^\n]+\n$/,
  );
});
