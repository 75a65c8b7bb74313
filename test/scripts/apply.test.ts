import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseConfig } from "../../stack/config";
import { readStackFile } from "../../stack/stack-file";
import { scaleToZero } from "../../targets/stack/scale-to-zero";
import { winnerYaml } from "../../tuning/decision/recommendation";
import { buildResult } from "../../tuning/results/build-result";
import { recommendationFileName } from "../../tuning/results/results-folder";
import { context, outcomes } from "../tuning/fixtures/outcomes";

const checkout = resolve(__dirname, "..", "..");
const stackFileText = `# our cheap stack
config:
  triton-slo-stack:project: my-project
  triton-slo-stack:asleep: "false" # while we measure
`;
/** A variant that nobody has named before: settings that the catalogue does not have under this name. */
const unnamed = {
  name: "mine",
  artefact: "tftrt_int8_bs16",
  maxBatchSize: 16,
  instanceCount: 3,
  queueDelayUs: 9000,
  preferredBatchSizes: [16],
};

interface Project {
  readonly folder: string;
  readonly results: string;
  /** What `pulumi` was called with. */
  calls(): string[];
  file(): string;
}

/** A project's folder, a results folder, and a `pulumi` that ends with `code`. */
function project(recommendation: string | null, code = 0, says = ""): Project {
  const folder = mkdtempSync(join(tmpdir(), "apply-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [bin, results] = [join(folder, "bin"), join(folder, "results")];
  for (const path of [bin, results]) mkdirSync(path);
  writeFileSync(join(folder, "Pulumi.dev.yaml"), stackFileText);
  if (recommendation !== null) writeFileSync(join(results, recommendationFileName), recommendation);
  // It shows the configuration that it was given, as a preview shows what follows from it.
  const program = `#!/bin/sh
echo "$@" >> '${folder}/calls'
echo '${says}'
while [ $# -gt 0 ]; do [ "$1" = --config-file ] && cat "$2"; shift; done
exit ${code}
`;
  writeFileSync(join(bin, "pulumi"), program);
  chmodSync(join(bin, "pulumi"), 0o755);
  return {
    folder,
    results,
    calls: () =>
      existsSync(join(folder, "calls")) ? readFileSync(join(folder, "calls"), "utf8").trim().split("\n") : [],
    file: () => readFileSync(join(folder, "Pulumi.dev.yaml"), "utf8"),
  };
}

function apply({ folder }: Project, ...words: string[]): Promise<{ code: number; text: string }> {
  const loader = pathToFileURL(require.resolve("tsx")).href;
  const env = { ...process.env, PATH: [join(folder, "bin"), process.env["PATH"]].join(delimiter) };
  return new Promise((done) => {
    const child = execFile(
      process.execPath,
      ["--import", loader, join(checkout, "scripts/apply.ts"), ...words],
      { cwd: folder, env },
      (error, out, err) => done({ code: error === null ? 0 : Number(error.code), text: out + err }),
    );
    child.stdin?.end();
  });
}

const yaml = (variant: unknown): string =>
  JSON.stringify({ config: { "triton-slo-stack:variant": variant } });

describe("applying a recommendation", () => {
  it("shows the difference and the preview, and writes nothing without a yes", async () => {
    const here = project(winnerYaml(buildResult(outcomes, context)));
    const { code, text } = await apply(here, here.results, "--stack", "dev");
    expect(code, text).toBe(2);
    expect(text).toMatch(/variant: \(default\) -> tftrt_int8_bs16_count4/);
    expect(text).toMatch(
      /Write this into the configuration of stack dev\? Nobody can be asked here: give --yes/,
    );
    expect(here.file()).toBe(stackFileText);
    const [call] = here.calls();
    expect(call).toMatch(/^preview --stack dev --config-file \S+ --diff --non-interactive$/);
    // The preview is of the proposed configuration.
    expect(text).toContain("triton-slo-stack:variant: tftrt_int8_bs16_count4");
  });

  it("writes the winner with --yes, keeps everything else, and says how to go on; once more there is nothing to do", async () => {
    const here = project(yaml(unnamed));
    const { code, text } = await apply(here, here.results, "--stack", "org/project/dev", "--yes");
    expect(code, text).toBe(0);
    expect(text).toMatch(/Written\. Next: pulumi up --stack org\/project\/dev, then npm run verify --/);
    expect(here.file()).toContain("# our cheap stack");
    expect(here.file()).toContain("# while we measure");
    // The program reads it as the variant that was measured.
    const { served } = parseConfig(readStackFile(here.folder, "dev")).variants;
    expect({ ...served, artefact: served.artefact.name }).toMatchObject(unnamed);
    const again = await apply(here, here.results, "--stack", "org/project/dev", "--yes");
    expect(again.text).toMatch(/is what .* recommends already/);
    expect(here.calls()).toHaveLength(1);
  });

  it("a variant without model files in the bucket is written, with the way to get them", async () => {
    const here = project(yaml(unnamed), 255, "gs://b/models/mine/1/ is empty: convert the model first");
    const { code, text } = await apply(here, here.results, "--stack", "dev", "--yes");
    expect(code, text).toBe(0);
    expect(text).toMatch(
      /no model files for this variant yet\. Next:\n.*asleep true.*\n.*startCommand.*\n.*asleep false/,
    );
    expect(parseConfig(readStackFile(here.folder, "dev")).variants.served.name).toBe("mine");
  });

  it("writes nothing when the preview fails, the values do not go together, or there is no winner", async () => {
    const failing = project(yaml(unnamed), 255);
    const refused = await apply(failing, failing.results, "--stack", "dev", "--yes");
    expect([refused.code, failing.file()]).toEqual([2, stackFileText]);
    expect(refused.text).toMatch(/the preview failed, so nothing was written/);

    const wrong = project(yaml({ ...unnamed, maxBatchSize: 64 }));
    expect((await apply(wrong, wrong.results, "--stack", "dev", "--yes")).text).toMatch(
      /stack dev: The stack's configuration has .*\n.*variant.*maxBatchSize/s,
    );
    expect(wrong.calls()).toEqual([]);

    const none = project(null);
    expect((await apply(none, none.results, "--stack", "dev")).text).toMatch(
      /recommendation\.yaml does not exist: the folder holds no finished sweep/,
    );
    expect((await apply(none, none.results, "--stack", "qa")).text).toMatch(/does not exist/);
  });
});

describe("scale-to-zero", () => {
  it("puts the stack to sleep by its configuration", async () => {
    const here = project(null);
    const path = process.env["PATH"];
    process.env["PATH"] = [join(here.folder, "bin"), path].join(delimiter);
    onTestFinished(() => void (process.env["PATH"] = path));
    await scaleToZero(here.folder, "dev", () => undefined);
    expect(here.calls()).toEqual(["up --stack dev --yes --skip-preview --non-interactive"]);
    expect(parseConfig(readStackFile(here.folder, "dev")).asleep).toBe(true);
    const failing = project(null, 1);
    process.env["PATH"] = [join(failing.folder, "bin"), path].join(delimiter);
    await expect(scaleToZero(failing.folder, "dev", () => undefined)).rejects.toThrow(
      /could not be put to sleep and still costs money: run pulumi up --stack dev \(asleep is set\)/,
    );
  });
});
