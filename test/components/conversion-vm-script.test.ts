/** The conversion VM's startup script: checked by shellcheck and run against stand-ins for gcloud, docker and the driver. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { conversionScript, type ConversionScriptInput } from "../../components/conversion-vm-script";

const input: ConversionScriptInput = {
  bucket: "models-1234567",
  repositoryPrefix: "models",
  image: "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
  planObject: "conversion/plan.json",
  packageObject: "conversion/package.zip",
  artefacts: ["original", "tftrt_fp16_bs64"],
  variants: [
    { name: "original", artefact: "original" },
    { name: "tftrt_fp16", artefact: "tftrt_fp16_bs64" },
  ],
  requirements: null,
  modelSource: null,
  calibrationImages: "calibration",
  heldOutImages: "gs://elsewhere/held-out",
  driverWaitS: 1,
};

it.each([{}, { requirements: "local.txt", modelSource: "gs://mine/m.onnx" }])(
  "passes shellcheck: %j",
  (change) => {
    const checked = spawnSync("shellcheck", ["-"], {
      input: conversionScript({ ...input, ...change }),
      encoding: "utf8",
    });
    if (checked.error !== undefined)
      throw new Error("shellcheck is needed: apt-get install shellcheck", { cause: checked.error });
    expect(checked.stdout).toBe("");
    expect(checked.status).toBe(0);
  },
);

it.each([
  ["bucket", { bucket: "a b" }],
  ["bucket", { bucket: "x;rm" }],
  ["bucket", { bucket: "" }],
  ["repository prefix", { repositoryPrefix: "$(id)" }],
  ["image", { image: "a`id`:1" }],
  ["artefact", { artefacts: ["a\nb"] }],
  ["artefact", { artefacts: ["-rf"] }],
  ["variant", { variants: [{ name: "a'b", artefact: "original" }] }],
  ["model source", { modelSource: "gs://b/$(id)" }],
  ["calibration images", { calibrationImages: "gs://b/a b" }],
  ["held-out images", { heldOutImages: "../x" }],
  ["requirements", { requirements: "a;b" }],
])("refuses a %s that a shell would interpret: %j", (what, change) => {
  expect(() => conversionScript({ ...input, ...change })).toThrow(new RegExp(`^${what} `));
});

describe("run", () => {
  let folder: string;
  let calls: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "conversion-"));
    calls = join(folder, "calls");
    mkdirSync(join(folder, "bin"));
    mkdirSync(join(folder, "work"));
    tool("gcloud", `if [ "$2" = cp ] && [ "$3" = - ]; then echo "status $(cat)" >> "${calls}"; exit 0; fi`);
    tool("docker", `if [ "$1" = run ]; then mkdir -p "$W/output/1"; echo {} > "$W/output/manifest.json"; fi`);
    tool("nvidia-smi", "");
    tool("shutdown", "");
    tool("sleep", "");
    tool("python3", "");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** A command that records its arguments and then does `body`. */
  function tool(name: string, body: string): void {
    const file = join(folder, "bin", name);
    writeFileSync(file, `#!/bin/bash\nW=${join(folder, "work")}\necho "${name} $*" >> "${calls}"\n${body}\n`);
    chmodSync(file, 0o755);
  }

  function run(change: Partial<ConversionScriptInput> = {}): {
    readonly code: number;
    readonly output: string;
    readonly lines: string[];
  } {
    const script = conversionScript({ ...input, ...change }).replace(
      "/var/lib/conversion",
      join(folder, "work"),
    );
    const done = spawnSync("bash", ["-c", script], {
      encoding: "utf8",
      env: { PATH: `${join(folder, "bin")}:${process.env.PATH}` },
    });
    return { code: done.status ?? -1, output: done.stdout, lines: readFileSync(calls, "utf8").split("\n") };
  }

  const states = (lines: readonly string[]) =>
    lines
      .filter((line) => line.startsWith("status "))
      .map((line) => JSON.parse(line.slice(7)) as { state: string; step: string; failed: string[] });

  it("converts each artefact, publishes each variant, keeps the log and stops the machine", () => {
    const { code, lines } = run();
    expect(code).toBe(0);
    const conversions = lines.filter((line) => line.startsWith("docker run"));
    expect(conversions.map((line) => /--artefact (\S+)/.exec(line)?.[1])).toEqual(input.artefacts);
    expect(lines.filter((line) => line.includes("gs://models-1234567/models/"))).toEqual([
      expect.stringMatching(
        /rsync .* gs:\/\/models-1234567\/artefacts\/original\/1 gs:\/\/models-1234567\/models\/original\/1 /,
      ),
      expect.stringMatching(
        /rsync .* gs:\/\/models-1234567\/artefacts\/tftrt_fp16_bs64\/1 gs:\/\/models-1234567\/models\/tftrt_fp16\/1 /,
      ),
    ]);
    expect(states(lines).at(-1)).toMatchObject({ state: "succeeded", step: "all done" });
    expect(lines.at(-2)).toBe("shutdown -h now");
    expect(lines.at(-3)).toMatch(/^gcloud storage cp .*\.log gs:\/\/models-1234567\/conversion\/logs\//);
  });

  it("uploads an artefact before its manifest, which says that it is whole", () => {
    const { lines } = run();
    const position = (pattern: RegExp) => lines.findIndex((line) => pattern.test(line));
    const files = position(/rsync .*output\/1 .*artefacts\/original\/1/);
    const manifest = position(/cp .*output\/manifest.json .*artefacts\/original\/manifest.json/);
    expect(files).toBeGreaterThan(-1);
    expect(manifest).toBeGreaterThan(files);
  });

  it("uploads nothing for an artefact that has not changed, and still publishes it", () => {
    tool("docker", "");
    const { code, lines } = run();
    expect(code).toBe(0);
    expect(
      lines.filter((line) => / gs:\/\/models-1234567\/artefacts\/original\/1 --quiet/.test(line)),
    ).toEqual([]);
    expect(lines.filter((line) => line.includes("gs://models-1234567/models/"))).toHaveLength(2);
  });

  it("makes and publishes the others when one artefact fails, keeps its explanation, and stops the machine", () => {
    tool(
      "docker",
      `[ "$1" = run ] || exit 0
      case "$*" in
        *tftrt*) echo "CUDA out of memory"; echo {} > "$W/output/failure.json"; exit 3 ;;
        *) mkdir -p "$W/output/1"; echo {} > "$W/output/manifest.json" ;;
      esac`,
    );
    const { code, output, lines } = run();
    expect(code).toBe(1);
    expect(output).toContain("CUDA out of memory");
    expect(states(lines).at(-1)).toMatchObject({
      state: "failed",
      step: "convert tftrt_fp16_bs64",
      failed: ["tftrt_fp16_bs64"],
    });
    expect(lines.filter((line) => line.includes("conversion/failures"))).toEqual([
      expect.stringMatching(
        /failure\.json gs:\/\/models-1234567\/conversion\/failures\/tftrt_fp16_bs64\.json /,
      ),
    ]);
    const published = lines.filter((line) => line.includes("gs://models-1234567/models/"));
    expect(published).toHaveLength(1);
    expect(published[0]).toContain("models/original/1");
    expect(lines.at(-2)).toBe("shutdown -h now");
  });

  it("reports an artefact whose upload fails as failed", () => {
    tool("gcloud", `case "$*" in *output/1*) exit 1;; esac`);
    const { code, output, lines } = run();
    expect(code).toBe(1);
    expect(output).toContain("original: FAILED");
    expect(lines.filter((line) => line.includes("artefacts/original/manifest.json gs://"))).toEqual([]);
    expect(lines.filter((line) => line.includes("gs://models-1234567/models/"))).toEqual([]);
  });

  it("fetches images and, from a bucket, the model, and hands them over", () => {
    tool(
      "gcloud",
      `case "$*" in *rsync*held-out*) echo x > "$W/inputs/held-out/a.jpg";; esac
      if [ "$2" = cp ] && [ "$3" = - ]; then echo "status $(cat)" >> "${calls}"; exit 0; fi`,
    );
    const { code, lines } = run({ modelSource: "gs://mine/resnet/saved_model/" });
    expect(code).toBe(0);
    expect(states(lines).map(({ step }) => step)).toContain("fetch the model gs://mine/resnet/saved_model");
    const [conversion] = lines.filter((line) => line.startsWith("docker run"));
    expect(conversion).toContain("--model /work/inputs/model/saved_model ");
    expect(conversion).toContain("--calibration /work/inputs/calibration --held-out /work/inputs/held-out");
    const fetched = lines.filter((line) => line.startsWith("gcloud") && line.includes("/inputs/"));
    expect(fetched.map((line) => /gs:\/\/\S+/.exec(line)?.[0])).toEqual([
      "gs://mine/resnet/saved_model",
      "gs://models-1234567/calibration",
      "gs://elsewhere/held-out",
    ]);
  });

  it("leaves the model to the package when it is on the web, and goes without images that are not there", () => {
    tool(
      "gcloud",
      'case "$*" in *rsync*inputs*) echo "ERROR: The following URLs matched no objects" >&2; exit 1;; esac',
    );
    const { code, output, lines } = run({ modelSource: "https://example.org/m.zip" });
    expect(code).toBe(0);
    expect(output).toContain("calibration: no images in gs://models-1234567/calibration");
    const [conversion] = lines.filter((line) => line.startsWith("docker run"));
    expect(conversion).not.toContain("--model");
    expect(conversion).toContain("--without-held-out");
  });

  it("ends when images may not be read, and says whom to let", () => {
    tool(
      "gcloud",
      'case "$*" in *elsewhere*) echo "HTTPError 403: no storage.objects.list access" >&2; exit 1;; esac',
    );
    const { code, output, lines } = run();
    expect(code).toBe(1);
    expect(output).toContain("gs://elsewhere/held-out cannot be read. Grant roles/storage.objectViewer");
    expect(lines.filter((line) => line.startsWith("docker run"))).toEqual([]);
  });

  it("installs what the container lacks, checked by hash", () => {
    const { lines } = run({ requirements: "local.txt" });
    const [install, ...conversions] = lines.filter((line) => line.startsWith("docker run"));
    expect(install).toMatch(
      /pip install .*--require-hashes .*\/work\/package\/convert\/requirements\/local\.txt$/,
    );
    expect(conversions[0]).toContain("PYTHONPATH=/work/package:/work/site");
  });

  it("ends when what the container lacks cannot be installed", () => {
    tool("docker", 'case "$*" in *pip*) exit 1;; esac');
    const { code, lines } = run({ requirements: "local.txt" });
    expect(code).toBe(1);
    expect(states(lines).at(-1)).toMatchObject({ state: "failed", step: "install local.txt" });
  });

  it("stops the machine after a failure before the first artefact", () => {
    tool("docker", "exit 1");
    const { code, lines } = run();
    expect(code).toBe(1);
    expect(states(lines).at(-1)).toMatchObject({ state: "failed", failed: [] });
    expect(lines.filter((line) => line.includes("gs://models-1234567/models/"))).toEqual([]);
    expect(lines.at(-2)).toBe("shutdown -h now");
  });

  it("fails when the plan cannot be fetched, after retries", () => {
    tool("gcloud", 'case "$*" in *plan.json*) exit 1;; esac');
    const { code, output, lines } = run();
    expect(code).toBe(1);
    expect(output).toContain("attempt 6 failed: fetch_inputs");
    expect(lines.filter((line) => line.startsWith("docker"))).toEqual([]);
  });

  it("fails when no driver comes, and says where to look", () => {
    tool("nvidia-smi", "exit 9");
    const { code, output } = run({ driverWaitS: 0 });
    expect(code).toBe(1);
    expect(output).toContain("no GPU driver after 0 s");
  });

  it("survives a status that cannot be written", () => {
    tool("gcloud", 'if [ "$2" = cp ] && [ "$3" = - ]; then exit 1; fi');
    expect(run().code).toBe(0);
    expect(existsSync(calls)).toBe(true);
  });
});
