import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildResult } from "../../../tuning/results/build-result";
import { writeFileAtomic } from "../../../tuning/results/durable";
import { fsError } from "../../../tuning/results/results-error";
import {
  folderState,
  newestUnfinished,
  readResult,
  ResultsFolder,
  runName,
} from "../../../tuning/results/results-folder";
import { context, outcomes } from "../fixtures/outcomes";
import { manifest } from "./manifest-fixture";
import { record } from "./records";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "results-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function sweep(name: string, end: "kill" | "finish"): string {
  const path = join(root, name);
  const folder = ResultsFolder.open(path, false);
  folder.writeManifest(manifest);
  folder.log.append(record("first"));
  folder.log.append(record("second", { valid: false }));
  if (end === "finish") folder.writeManifest({ ...manifest, endedAt: "2026-03-02T09:40:00.000Z" });
  folder.close();
  return path;
}

describe("ResultsFolder", () => {
  it("gathers the files of a sweep", () => {
    const path = join(root, "deep", "run");
    const folder = ResultsFolder.open(path, false);
    const result = buildResult(outcomes, context);
    folder.writeManifest(manifest);
    folder.writeResult(result);
    folder.writeReport("<!doctype html>");
    folder.close();
    expect(readdirSync(path).sort()).toEqual(["manifest.json", "points.jsonl", "report.html", "result.json"]);
    expect(readResult(path)).toEqual(result);
  });

  it("continues an unfinished sweep without being told", () => {
    const folder = ResultsFolder.open(sweep("run", "kill"), false);
    expect(folder.log.find(record("first").key)).not.toBeNull();
    expect(folder.previousManifest?.startedAt).toBe(manifest.startedAt);
    expect(folder.notes).toEqual([expect.stringContaining("1 finished trial")]);
    folder.close();
  });

  it("opens a finished sweep only with --resume", () => {
    const path = sweep("run", "finish");
    expect(() => ResultsFolder.open(path, false)).toThrow(
      /finished sweep of 2026-03-02.*--out DIR.*--resume/,
    );
    ResultsFolder.open(path, true).close();
  });

  it("does not start over what it cannot read", () => {
    const path = sweep("run", "kill");
    writeFileSync(join(path, "manifest.json"), "{");
    expect(() => ResultsFolder.open(path, true)).toThrow("manifest.json is not JSON");
    expect(readdirSync(path)).not.toContain("sweep.lock");
  });
});

describe("folderState and newestUnfinished", () => {
  it("finds the newest sweep that did not end", () => {
    expect(newestUnfinished(join(root, "none"))).toBeNull();
    sweep("2026-03-01T00-00-00", "kill");
    const newest = sweep("2026-03-02T00-00-00", "kill");
    sweep("2026-03-03T00-00-00", "finish");
    mkdirSync(join(root, "2026-03-04T00-00-00"));
    writeFileSync(join(root, "zz.txt"), "");
    expect(newestUnfinished(root)).toBe(newest);
    expect(folderState(newest)).toBe("unfinished");
    expect(folderState(join(root, "2026-03-03T00-00-00"))).toBe("finished");
    expect(folderState(join(root, "2026-03-04T00-00-00"))).toBe("empty");
  });

  it("names runs so that they sort by time", () => {
    expect(runName(new Date("2026-03-02T09:30:05.123Z"))).toBe("2026-03-02T09-30-05");
  });
});

describe("readResult", () => {
  it("names a file that is missing or of another layout", () => {
    expect(() => readResult(root)).toThrow("result.json");
    writeFileSync(join(root, "result.json"), "{}");
    expect(() => readResult(root)).toThrow("is not a result of this version");
  });
});

describe("writeFileAtomic", () => {
  it("leaves the old file and no rest when it fails", () => {
    const path = join(root, "file");
    mkdirSync(path);
    writeFileSync(join(path, "old"), "old");
    expect(() => writeFileAtomic(path, "new")).toThrow(`write ${path}`);
    expect(readdirSync(root)).toEqual(["file"]);
    expect(readFileSync(join(path, "old"), "utf8")).toBe("old");
  });
});

describe("fsError", () => {
  it.each([
    ["ENOSPC", "disk-full", "--resume"],
    ["EDQUOT", "disk-full", "--resume"],
    ["EROFS", "not-writable", "--out DIR"],
    ["EACCES", "not-writable", "--out DIR"],
    ["EIO", "io", "EIO"],
  ])("%s is %s", (code, kind, hint) => {
    const error = fsError(Object.assign(new Error(`${code}: something`), { code }), "write x/points.jsonl");
    expect(error.kind).toBe(kind);
    expect(error.message).toContain("cannot write x/points.jsonl");
    expect(error.message).toContain(hint);
  });
});
