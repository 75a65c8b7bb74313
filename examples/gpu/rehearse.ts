/**
 * The GPU machine's run without a GPU: `npm run gpu:rehearse [-- FOLDER]` makes a bundle for this machine's Python with a model that only
 * takes its time, unpacks it, starts the real Triton, and measures some minutes: a run that is killed in the middle and comes back on
 * "another machine", one that ends by its time limit, and one that finishes what is left although its server crashes; then two "GPUs" side
 * by side, cut off, and finished in an empty folder from the archive. Needs `npm run setup:tools -- --tool triton` and a python3 (3.8 to
 * 3.13) with NumPy 1.x and its shared library; PYTHON names another one than that in PATH.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { freePorts } from "../../test/free-ports";
import { lockFileName } from "../../tuning/results/lock";
import { readResult } from "../../tuning/results/results-folder";
import { fail, part, Rehearsal, trialsOf, VARIANTS } from "./rehearsal/rehearsal";

function pythonVersion(python: string): string {
  const asked =
    "import sys, numpy; assert numpy.__version__ < '2', 'NumPy 2'; print('%d.%d' % sys.version_info[:2])";
  const { status, stdout, stderr } = spawnSync(python, ["-c", asked], { encoding: "utf8" });
  if (status === 0) return stdout.trim();
  return fail(
    `${python} cannot be used (${(stderr ?? "not found").trim().split("\n").at(-1)}): name one that has NumPy 1.x with PYTHON=/path/to/python3`,
  );
}

/** That a part is whole, and has every trial once. */
function check(folder: string, least: number): void {
  const { variants, endedEarly } = readResult(folder);
  const keys = trialsOf(folder);
  if (endedEarly !== null || variants.length < least) fail(`${folder} is not whole`);
  if (new Set(keys).size !== keys.length) fail(`${folder} has a trial twice`);
  const rates = variants.map(({ name, sloRate }) => `${name} ${sloRate?.estimate.toFixed(1) ?? "none"}/s`);
  process.stdout.write(`${folder}: ${keys.length} trials, ${rates.join(", ")}\n`);
}

function summarise(folder: string): void {
  const words = ["--import", "tsx", join(__dirname, "summary.ts"), folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  if (status !== 0) fail(`no summary: ${stderr}`);
  process.stdout.write(stdout);
}

async function oneServer(rehearsal: Rehearsal): Promise<void> {
  process.stdout.write("\n--- killed in the middle\n");
  const killed = await rehearsal.measure(null, () => rehearsal.trials().length >= 2);
  const kept = rehearsal.trials();
  if (killed.code !== null || kept.length < 2)
    fail(`it was to be killed after two trials, and ended with ${killed.code}`);
  // As from a machine that is gone.
  const lock = join(rehearsal.results, part, lockFileName);
  if (!existsSync(lock)) fail("a killed sweep leaves its lock");
  writeFileSync(lock, readFileSync(lock, "utf8").replace(/"host":"[^"]*"/, '"host":"gone"'));

  process.stdout.write("\n--- ended by its time limit\n");
  const limited = await rehearsal.measure(45);
  if (limited.code !== 4) fail(`with too little time it must end with 4, not ${limited.code}`);
  const more = rehearsal.trials();
  if (kept.some((trial, index) => trial !== more[index]))
    fail("trials of the killed run were lost or repeated");

  process.stdout.write("\n--- the rest, with a crash of the server\n");
  let crashedAt: number | null = null;
  let wentOnAt: number | null = null;
  const rest = await rehearsal.measure(null, () => {
    const news = rehearsal.trials().length - more.length;
    if (news > 0 && crashedAt === null) {
      crashedAt = Date.now();
      rehearsal.crashServer();
    }
    if (news > 1) wentOnAt ??= Date.now();
    return false;
  });
  if (rest.code !== 0) fail(`it must finish, and ended with ${rest.code}`);
  if (!/the server ended with exit code 139[^]*started again \(1 of/.test(rest.text))
    fail("the server was to crash once, and to be started again");
  if (crashedAt === null || wentOnAt === null) fail("the sweep was to go on after the crash");
  process.stdout.write(
    `the next trial ended ${Math.round((wentOnAt - crashedAt) / 1000)} s after the crash\n`,
  );
  const again = await rehearsal.measure(null);
  if (again.code !== 0 || !again.text.includes(`${part}: finished before`))
    fail("what is finished must be left out");
  check(join(rehearsal.results, part), VARIANTS);
  summarise(rehearsal.results);
}

/** Folders of the parts of both GPUs below a results folder. */
function foldersIn(results: string): string[] {
  return ["gpu1", "gpu2"].flatMap((gpu) => {
    const file = join(results, gpu, "parts");
    const own = existsSync(file) ? readFileSync(file, "utf8").trim().split(" ").filter(Boolean) : [];
    return own.map((name) => join(gpu, name));
  });
}

async function twoServers(rehearsal: Rehearsal): Promise<void> {
  process.stdout.write("\n--- two side by side, cut off\n");
  const [cut, fresh] = [join(rehearsal.folder, "cut-off"), join(rehearsal.folder, "fresh")];
  const trialsIn = (gpu: string): string[] =>
    foldersIn(cut)
      .filter((folder) => folder.startsWith(gpu))
      .flatMap((folder) => trialsOf(join(cut, folder)));
  let enoughSinceMs: number | null = null;
  const killed = await rehearsal.sideBySide(cut, () => {
    if (trialsIn("gpu1").length === 0 || trialsIn("gpu2").length === 0) return false;
    enoughSinceMs ??= Date.now();
    const archivedMs = existsSync(rehearsal.archive) ? statSync(rehearsal.archive).mtimeMs : 0;
    return archivedMs > enoughSinceMs + 1000;
  });
  if (killed.code !== null) fail(`it was to be killed, and ended with ${killed.code}`);

  process.stdout.write("\n--- finished in an empty folder from the archive\n");
  const rest = await rehearsal.sideBySide(fresh);
  if (rest.code !== 0) fail(`it must finish, and ended with ${rest.code}`);
  if (!rest.text.includes("goes on from")) fail("it was to go on from the archive");
  const configurations: string[] = [];
  for (const folder of foldersIn(fresh)) {
    check(join(fresh, folder), 1);
    const [before, after] = [trialsOf(join(cut, folder)), trialsOf(join(fresh, folder))];
    // One that ended while the archive was made may be measured again.
    const kept = before.filter((trial, index) => after[index] === trial);
    process.stdout.write(`${folder}: went on after ${kept.length} trials\n`);
    if (kept.length < before.length - 1 || (before.length > 1 && kept.length === 0))
      fail("trials in the archive were lost or repeated");
    if (folder.includes("grid"))
      configurations.push(...readResult(join(fresh, folder)).variants.map(({ name }) => name));
  }
  const { length } = configurations;
  if (length !== 2 * VARIANTS) fail(`the grids have ${2 * VARIANTS} configurations, ${length} were measured`);
  summarise(fresh);
}

async function main(folder: string): Promise<void> {
  const wanted = process.env["PYTHON"] ?? "python3";
  const python = spawnSync("sh", ["-c", `command -v ${JSON.stringify(wanted)}`], {
    encoding: "utf8",
  }).stdout.trim();
  if (python === "") fail(`${wanted} is not there: name a python3 with NumPy with PYTHON=/path/to/python3`);
  rmSync(folder, { recursive: true, force: true });
  const startedMs = Date.now();
  const [port] = await freePorts(1);
  const rehearsal = new Rehearsal(folder, python, port!);
  rehearsal.unpack(pythonVersion(python));
  await oneServer(rehearsal);
  await twoServers(rehearsal);
  process.stdout.write(
    `\nrehearsed in ${Math.round((Date.now() - startedMs) / 1000)} s: results in ${folder}\n`,
  );
}

main(resolve(process.argv[2] ?? join(__dirname, "../../dist/gpu-rehearsal"))).catch((error: unknown) => {
  fail(error instanceof Error ? error.message : String(error));
});
