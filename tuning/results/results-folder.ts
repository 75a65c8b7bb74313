/**
 * `results/<run>/`: the folder of one sweep, held by one process. It gathers `points.jsonl`, `manifest.json`, `result.json` and
 * `report.html`; the last three are replaced whole.
 */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "./durable";
import { readManifest, writeManifest, type Manifest } from "./manifest";
import { PointLog, pointLogFileName } from "./point-log";
import { errorCode, fsError, oneLine, ResultsError } from "./results-error";
import { resultFileName, resultSchema, type Result } from "./result-schema";
import { earlierS } from "../sweep-cost";

/** Name of the report in the results folder. */
export const reportFileName = "report.html";

/** Name of the file with the stack configuration that serves the recommended variant. */
export const recommendationFileName = "recommendation.yaml";

/** `unfinished`: trials, but the sweep has not ended. `finished`: it has. `empty`: neither, or no such folder. */
export type FolderState = "empty" | "unfinished" | "finished";

/** What lies in a results folder. @throws ResultsError when it cannot be read */
export function folderState(folder: string): FolderState {
  const files = listFolder(folder);
  if (!files.includes(pointLogFileName)) return "empty";
  return readManifest(folder)?.endedAt ? "finished" : "unfinished";
}

/** Newest unfinished results folder below `root` (names are taken as they sort: start times); null when there is none. */
export function newestUnfinished(root: string): string | null {
  return newest(root, "unfinished");
}

/** Newest results folder below `root` whose sweep has ended; null when there is none. */
export function newestFinished(root: string): string | null {
  return newest(root, "finished");
}

function newest(root: string, state: FolderState): string | null {
  const folders = listFolder(root)
    .filter((name) => statSync(join(root, name)).isDirectory())
    .sort()
    .reverse()
    .map((name) => join(root, name));
  return folders.find((folder) => folderState(folder) === state) ?? null;
}

/** Folder name of a run that starts now: sorts by time, and is a valid file name everywhere. */
export function runName(startedAt: Date): string {
  return startedAt.toISOString().slice(0, 19).replaceAll(":", "-");
}

/** An open results folder. Close it, or the next sweep has to take over its lock. */
export class ResultsFolder {
  private constructor(
    readonly path: string,
    readonly log: PointLog,
    /** Manifest of the interrupted sweep that is continued; null for a fresh folder. */
    readonly previousManifest: Manifest | null,
    /** What the user should know, e.g. how many trials need not be repeated. */
    readonly notes: readonly string[],
  ) {}

  /**
   * Opens a folder for one sweep. An unfinished sweep in it is continued: its finished trials are not repeated. A finished one is
   * only extended when `resume` says so.
   * @throws ResultsError `in-use`, `not-writable`, `invalid` (holds a finished sweep, or a damaged file)
   */
  static open(folder: string, resume: boolean): ResultsFolder {
    const state = folderState(folder);
    const manifest = readManifest(folder);
    if (state === "finished" && !resume)
      throw new ResultsError(
        "invalid",
        `${folder} holds the finished sweep of ${manifest?.startedAt ?? "an unknown time"}. ` +
          `Choose another folder with --out DIR, or add --resume to reuse its trials.`,
      );
    const log = PointLog.open(folder);
    const finished = log.records.filter((record) => record.result.load.valid).length;
    const notes = [...log.notes];
    if (finished > 0)
      notes.push(`${finished} finished trials in ${folder} are not repeated if they are asked for again`);
    return new ResultsFolder(folder, log, manifest, notes);
  }

  /** Wall seconds of the interrupted runs of this sweep; 0 for a fresh folder. */
  get earlierS(): number {
    if (this.previousManifest === null) return 0;
    const { startedAt, resumedAt } = this.previousManifest;
    return earlierS(
      [startedAt, ...resumedAt],
      this.log.records.map(({ finishedAt }) => finishedAt),
    );
  }

  writeManifest(manifest: Manifest): void {
    writeManifest(this.path, manifest);
  }

  writeResult(result: Result): void {
    writeFileAtomic(join(this.path, resultFileName), JSON.stringify(result, null, 2) + "\n");
  }

  /** Stack configuration that serves the recommended variant. */
  writeRecommendation(yaml: string): void {
    writeFileAtomic(join(this.path, recommendationFileName), yaml);
  }

  writeReport(html: string): void {
    writeFileAtomic(join(this.path, reportFileName), html);
  }

  close(): void {
    this.log.close();
  }
}

/** Reads the result of a finished run. @throws ResultsError when it is missing or breaks the schema */
export function readResult(folder: string): Result {
  const path = join(folder, resultFileName);
  try {
    return resultSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT")
      throw new ResultsError("invalid", `${path} does not exist: ${whatElse(folder)}`);
    if (errorCode(error) !== null) throw fsError(error, `read ${path}`);
    throw new ResultsError("invalid", `${path} is not a result of this version: ${oneLine(error)}`, {
      cause: error,
    });
  }
}

/** What to do about a folder without a result. */
function whatElse(folder: string): string {
  if (!existsSync(folder)) return `there is no folder ${folder}; name one of results/`;
  return folderState(folder) === "unfinished"
    ? `its sweep has not come so far; npm run tune -- --out ${folder} --resume goes on with it`
    : "it is no results folder; name one of results/";
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw fsError(error, `read the folder ${folder}`);
  }
}
