/**
 * The scoreboard: this project's search against what people do today, on random simulated servers whose truth is known.
 * Run: npm run bench:search -- [--sweeps 1000] [--json FILE]; see --help. Finished sweeps are kept, so it can be interrupted.
 */
import { fork } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { BudgetPreset } from "../tuning/search/budget";
import type { Score } from "./search-answer";
import { complaintsAbout } from "./search-bounds";
import { tagOf, TruthCache, WorkFile } from "./search-cache";
import { renderKinds, renderTable, summarise } from "./search-report";
import { type Done, type Job, oursName, type Part, type Sweep } from "./search-worker";
import { kindOf, worldKinds } from "./search-worlds";

const help = `Scores the search on random simulated servers whose truth is known, in virtual time.

  --sweeps N      sweeps of every strategy (default 1000)
  --from N        seed of the first one (default 0)
  --json FILE     write the table as JSON
  --processes N   default: one for every core
  --preset NAME   quick or thorough (default): the effort of this project's search
  --only PART     ours: only this project's search; others: only what it is compared with (it is kept when our search changes)
  --kind NAME     only worlds of one kind: ${worldKinds.join(", ")}
  --limit-s N     stop after so many seconds; the same command goes on later
  --fresh         forget finished sweeps and truths
  --verbose       a line for every sweep of this project's search that went wrong
  --check         exit with 1 unless the figures that the README promises are met, with slack for the number of sweeps
`;
const { values } = parseArgs({
  options: {
    sweeps: { type: "string", default: "1000" },
    from: { type: "string", default: "0" },
    json: { type: "string" },
    processes: { type: "string", default: String(availableParallelism()) },
    preset: { type: "string", default: "thorough" },
    only: { type: "string" },
    kind: { type: "string" },
    "limit-s": { type: "string", default: "Infinity" },
    fresh: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

/** The code that truths, our answers and the others' answers follow from: what was kept is used as long as that is the same. */
const truthFolders = ["serving-model"];
const truthFiles = [
  ...["search-worlds.ts", "search-variation.ts", "search-truth.ts"].map((name) => `bench/${name}`),
  ...["diagnosis/candidates.ts", "diagnosis/relief.ts", "diagnosis/special-causes.ts"].map(
    (name) => `tuning/${name}`,
  ),
  "tuning/search/model-knee.ts",
];
const scoring = "bench/search-answer.ts";
const oursFolders = [
  ...truthFolders,
  ...["search", "identify", "diagnosis", "statistics"].map((name) => `tuning/${name}`),
];
const oursFiles = [...truthFiles, scoring, "bench/search-ours.ts"];
const othersFiles = [...truthFiles, scoring, "bench/search-baselines.ts", "tuning/statistics/binomial.ts"];

type Works = Readonly<Record<Part, WorkFile<Sweep>>>;

/** Fewest sweeps that --check is content with when the time is over. */
const leastChecked = 100;
const root = join(__dirname, "..");
const cacheFolder = join(root, "node_modules/.cache/scoreboard");

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const { preset } = values;
  if (preset !== "quick" && preset !== "thorough")
    throw new Error(`--preset ${preset} is none; use quick or thorough.`);
  const { only } = values;
  if (only !== undefined && only !== "ours" && only !== "others")
    throw new Error(`--only ${only} is none; use ours or others.`);
  const parts: readonly Part[] = only === undefined ? ["ours", "others"] : [only];
  const [sweeps, from, processes] = [values.sweeps, values.from, values.processes].map(Number) as [
    number,
    number,
    number,
  ];
  if (!(sweeps >= 1 && from >= 0 && processes >= 1))
    throw new Error("--sweeps, --from and --processes are numbers.");
  mkdirSync(cacheFolder, { recursive: true });
  const truths = new TruthCache(join(cacheFolder, "truths.jsonl"), tagOf(truthFolders, truthFiles));
  const work: Works = {
    ours: new WorkFile(join(cacheFolder, `ours-${preset}.jsonl`), tagOf(oursFolders, oursFiles)),
    others: new WorkFile(join(cacheFolder, "others.jsonl"), tagOf(truthFolders, othersFiles)),
  };
  if (values.fresh) [truths, work.ours, work.others].forEach((cache) => cache.forget());
  const seeds = Array.from({ length: sweeps }, (_, i) => from + i).filter(
    (seed) => values.kind === undefined || kindOf(seed) === values.kind,
  );
  const missing = seeds.flatMap((seed) => {
    const missed = parts.filter((part) => !work[part].done.has(seed));
    return missed.length === 0 ? [] : [{ seed, parts: missed }];
  });
  const started = performance.now();
  await scoreAll(missing, preset, processes, truths, work);
  truths.tidy();
  // Of a sweep that was interrupted one part may be there alone: rows are compared over the same servers.
  const done = seeds.filter((seed) => parts.every((part) => work[part].done.has(seed)));
  const sweepsOf = (part: Part): Sweep[] => done.map((seed) => work[part].done.get(seed)!);
  const scores = parts.flatMap((part) => sweepsOf(part).flatMap((sweep) => sweep.scores));
  if (scores.length === 0) return 1;
  const rows = summarise(scores);
  const cpuS = sweepsOf(parts[0]!).reduce((sum, { cpuMs }) => sum + cpuMs, 0) / done.length / 1000;
  process.stdout.write(
    `${renderTable(rows)}\n\n${oursName}, by kind of server:\n\n${renderKinds(scores, oursName)}\n\n` +
      `${cpuS.toFixed(2)} s of processor time a sweep (${parts[0]}); ${missing.length} sweeps now, in ${((performance.now() - started) / 1000).toFixed(0)} s\n`,
  );
  if (values.verbose)
    for (const score of scores.filter(wentWrong)) process.stdout.write(`${lineOf(score)}\n`);
  if (values.json !== undefined) {
    mkdirSync(dirname(values.json), { recursive: true });
    writeFileSync(values.json, `${JSON.stringify({ strategies: rows }, null, 2)}\n`);
  }
  const complaints = values.check ? complaintsAbout(rows) : [];
  for (const complaint of complaints) process.stderr.write(`scoreboard: ${complaint}\n`);
  if (done.length < seeds.length)
    process.stderr.write(`scoreboard: ${done.length} of ${seeds.length} sweeps in the time that was given\n`);
  // Chance is allowed for by the number of sweeps; with too few nothing would ever be wrong.
  const enough = done.length === seeds.length || (values.check && done.length >= leastChecked);
  return enough && complaints.length === 0 ? 0 : 1;
}

/** Our own sweeps that broke a promise, for finding out why. */
function wentWrong({ strategy, covered, falsePass, rightCause, rightMove }: Score): boolean {
  return strategy === oursName && (!covered || falsePass || rightCause === false || rightMove === false);
}

function lineOf(score: Score): string {
  const percent = (value: number | null): string => (value === null ? "-" : `${(100 * value).toFixed(2)} %`);
  const wrong =
    score.rightCause && score.rightMove ? "" : `\n      said ${score.said}\n      right ${score.right}`;
  return (
    `seed ${score.seed} ${score.kind}: truth ${score.truth?.toFixed(1)}, error ${percent(score.error)}, half width ${percent(score.halfWidth)}, ` +
    `promised ${percent(score.promisedShare)}${score.covered ? "" : " UNCOVERED"}${score.falsePass ? " FALSE PASS" : ""}, ` +
    `${score.measuredS.toFixed(0)} s, ${score.trials} trials${wrong}`
  );
}

/** Sends seeds to processes, one at a time each. */
async function scoreAll(
  jobs: readonly Pick<Job, "seed" | "parts">[],
  preset: BudgetPreset,
  processes: number,
  truths: TruthCache,
  work: Works,
): Promise<void> {
  const waiting = [...jobs];
  const started = performance.now();
  const secondsGone = (): number => (performance.now() - started) / 1000;
  let finished = 0;
  let shownS = 0;
  const worker = (): Promise<void> =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) return resolve();
      const child = fork(join(__dirname, "search-worker.ts"));
      const next = (): void => {
        const waited = secondsGone() < Number(values["limit-s"]) ? waiting.shift() : undefined;
        if (waited === undefined) return void child.disconnect();
        const job: Job = { ...waited, preset, truths: truths.of(waited.seed) };
        child.send(job);
      };
      child.on("message", (done: Done) => {
        for (const [key, value] of done.added) truths.put(key, value);
        for (const [part, sweep] of done.sweeps) work[part].add(sweep);
        finished++;
        if (secondsGone() > shownS + 10) {
          shownS = secondsGone();
          const leftS = (shownS / finished) * (jobs.length - finished);
          process.stderr.write(`${finished} of ${jobs.length} sweeps, about ${leftS.toFixed(0)} s left\n`);
        }
        next();
      });
      child.on("error", reject);
      child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
      next();
    });
  await Promise.all(Array.from({ length: Math.min(processes, jobs.length) }, worker));
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`scoreboard: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 2;
  },
);
