import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseTuneCommandLine, type TuneOptions } from "../../scripts/tune-options";

const known = ["original", "tftrt_fp16", "tftrt_int8"];
const parse = (line: string) => parseTuneCommandLine(line === "" ? [] : line.split(" "), known);

function options(line: string): TuneOptions {
  const parsed = parse(line);
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

function errors(line: string): readonly string[] {
  const parsed = parse(line);
  if (parsed.kind !== "invalid") throw new Error(JSON.stringify(parsed));
  return parsed.errors;
}

const defaults: TuneOptions = {
  variants: null,
  variantsFile: null,
  triton: null,
  stack: null,
  yesProd: false,
  replicas: null,
  maxRatePerS: null,
  maxMinutes: null,
  maxCostUsd: 5,
  prices: null,
  yes: false,
  after: null,
  apply: false,
  wire: false,
  slo: null,
  goalRatePerS: null,
  race: false,
  explore: 0,
  load: "poisson",
  effort: "quick",
  workers: null,
  busyWaitMs: 0,
  seed: 1,
  out: null,
  resume: false,
  images: null,
  timeDilation: null,
  transport: "lean",
  json: false,
  executor: "simulated-t4",
  models: null,
  accuracy: true,
  reference: null,
  heldOut: null,
  accuracyLimits: null,
  conversionManifest: null,
};

describe("good command lines", () => {
  it("has defaults for everything", () => {
    expect(options("")).toEqual(defaults);
  });

  it.each<[string, Partial<TuneOptions>]>([
    ["--variants tftrt_int8,original", { variants: ["tftrt_int8", "original"] }],
    ["--variants=tftrt_int8", { variants: ["tftrt_int8"] }],
    ["--variants-file v.yaml", { variantsFile: "v.yaml" }],
    [
      "--executor onnx --models m --variants any_name",
      { executor: "onnx", models: "m", variants: ["any_name"] },
    ],
    ["--no-accuracy", { accuracy: false }],
    [
      "--reference tftrt_fp16 --held-out photos --accuracy-limits limits.yaml",
      { reference: "tftrt_fp16", heldOut: "photos", accuracyLimits: "limits.yaml" },
    ],
    ["--triton gpu-1:8001", { triton: { addresses: ["gpu-1:8001"], metrics: null } }],
    [
      "--triton [::1]:8001,b:9001 --metrics http://a/m,https://b:1/metrics --max-rate 250.5 --variants-file v.yaml",
      {
        triton: { addresses: ["[::1]:8001", "b:9001"], metrics: ["http://a/m", "https://b:1/metrics"] },
        maxRatePerS: 250.5,
        variantsFile: "v.yaml",
      },
    ],
    [
      "--triton gpu-1:8001 --conversion-manifest a/manifest.json,b/manifest.json",
      {
        triton: { addresses: ["gpu-1:8001"], metrics: null },
        conversionManifest: ["a/manifest.json", "b/manifest.json"],
      },
    ],
    ["--stack dev --variants mine,tftrt_int8", { stack: "dev", variants: ["mine", "tftrt_int8"] }],
    [
      "--stack org/p/prod --yes-prod --max-rate 3000",
      { stack: "org/p/prod", yesProd: true, maxRatePerS: 3000 },
    ],
    ["--stack dev --max-cost 2.5 --yes", { stack: "dev", maxCostUsd: 2.5, yes: true }],
    [
      "--stack dev --apply --after scale-to-zero --prices p.json",
      { stack: "dev", apply: true, after: "scale-to-zero", prices: "p.json" },
    ],
    ["--stack dev --replicas 1,2", { stack: "dev", replicas: [1, 2] }],
    ["--slo p99.9=0.05s", { slo: { quantile: 0.999, boundMs: 50 } }],
    ["--slo P50=20MS", { slo: { quantile: 0.5, boundMs: 20 } }],
    ["--goal-rate 1500", { goalRatePerS: 1500 }],
    ["--explore", { explore: 3 }],
    ["--explore 1", { explore: 1 }],
    ["--load users", { load: "users" }],
    ["--load constant --quick", { load: "constant" }],
    ["--thorough", { effort: "thorough" }],
    ["--workers 4 --seed 0", { workers: 4, seed: 0 }],
    [
      "--triton gpu-1:8001 --busy-wait-ms 0.5",
      { triton: { addresses: ["gpu-1:8001"], metrics: null }, busyWaitMs: 0.5 },
    ],
    ["--executor onnx --busy-wait-ms 2", { executor: "onnx", busyWaitMs: 2 }],
    ["--workers auto --time-dilation auto", {}],
    ["--time-dilation 2.5", { timeDilation: 2.5 }],
    ["--out results/a --resume", { out: "results/a", resume: true }],
    ["--images photos --transport grpc-js --json", { images: "photos", transport: "grpc-js", json: true }],
  ])("%s", (line, expected) => {
    expect(options(line)).toEqual({ ...defaults, ...expected });
  });

  it("keeps spaces in folder names", () => {
    const parsed = parseTuneCommandLine(["--out", "my results"], known);
    expect(parsed).toMatchObject({ options: { out: "my results" } });
  });
});

describe("bad command lines name the option, the value and the fix", () => {
  it.each([
    [
      "--variants orignal",
      /^--variants orignal: is not a known variant; did you mean "original"\? Known: original,/,
    ],
    ["--variants tftrt_fp16,tftrt_fp16", /^--variants tftrt_fp16: is named twice/],
    ["--variants original,", /empty name/],
    ["--slo 100ms", /^--slo 100ms: give a percentile and a bound with its unit, e\.g\. p95=100ms/],
    ["--slo p95=100", /with its unit/],
    ["--slo p100=100ms", /between p50 and p99\.9/],
    ["--slo p40=100ms", /between p50 and p99\.9/],
    ["--slo p95=0ms", /between 1ms and 60s/],
    ["--goal-rate 0", /^--goal-rate 0: give a rate in requests per second/],
    ["--goal-rate 1e3", /^--goal-rate 1e3: give a rate/],
    ["--load user", /^--load user: give one of poisson, constant, users - did you mean "users"\?/],
    ["--workers 0", /^--workers 0: give a whole number from 1 to 64, or auto/],
    ["--workers 2.5", /whole number/],
    ["--seed one", /^--seed one: give a whole number/],
    ["--time-dilation 0.5", /^--time-dilation 0\.5: give a factor from 1 to 1000, or auto/],
    ["--transport grpc", /^--transport grpc: give one of lean, grpc-js$/],
    ["--transport grpcjs", /did you mean "grpc-js"\?$/],
    ["--quick --thorough", /exclude each other/],
    ["--out", /^--out needs a value, e\.g\. --out results\/mine/],
    ["--out=", /^--out needs a value/],
    ["--seeds 3", /^unknown option --seeds; did you mean "--seed"\? See --help\./],
    ["original", /^unexpected word "original"/],
    ["--triton gpu-1", /^--triton gpu-1: give the host and port of the server's gRPC endpoint, e\.g\./],
    ["--triton http://gpu-1:8001", /^--triton http:\/\/gpu-1:8001: give the host and port/],
    ["--triton a:1,a:1", /^--triton a:1: is named twice/],
    ["--triton a:1,", /^--triton a:1,: give the host/],
    ["--triton a:1 --metrics a:8002", /^--metrics a:8002: give a URL, e\.g\. http:/],
    ["--explore 0", /^--explore 0: give a whole number from 1 to 20/],
    ["--explore many", /^--explore many: give a whole number from 1 to 20/],
    ["--triton a:1 --max-rate 0", /^--max-rate 0: give a rate in requests per second/],
    ["--triton a:1 --time-dilation 2", /^--time-dilation is for the simulated T4/],
    ["--triton a:1 --variants original --variants-file v.yaml", /exclude each other: put all variants/],
    ["--triton a:1 --executor onnx", /^--executor is for the local server: leave out --triton and --stack$/],
    ["--models m", /^--models goes with --executor onnx$/],
    ["--executor onnx --time-dilation 2", /ONNX Runtime runs in real time; leave it out/],
    ["--executor gpu", /^--executor gpu: give one of simulated-t4, onnx/],
    ["--no-accuracy --reference original", /^--reference and --no-accuracy exclude each other$/],
    [
      "--max-rate 300",
      /^--max-rate is for a running server: name one with --triton HOST:PORT or --stack NAME/,
    ],
    ["--stack", /^--stack needs a value, e\.g\. --stack dev/],
    ["--stack dev --triton a:1", /exclude each other: the stack's servers are found by its outputs/],
    ["--stack dev --workers 2", /^--workers is for workers on this machine: pulumi config set loadWorkers/],
    [
      "--stack dev --busy-wait-ms 2",
      /^--busy-wait-ms is for workers on this machine: pulumi config set loadBusyWaitMs MS changes the stack's$/,
    ],
    ["--busy-wait-ms 11", /^--busy-wait-ms 11: give milliseconds from 0 to 10, e\.g\. 2$/],
    ["--stack dev --images x", /^--images is for workers on this machine/],
    ["--stack dev --variants a,a", /^--variants a: is named twice/],
    ["--stack dev --time-dilation 2", /^--time-dilation is for the simulated T4/],
    [
      "--stack dev --variants-file v.yaml",
      /^--variants-file is not for a stack: add variants to repositoryVariants in its configuration$/,
    ],
    [
      "--conversion-manifest m.json",
      /^--conversion-manifest is for a running server: name one with --triton HOST:PORT$/,
    ],
    [
      "--stack dev --conversion-manifest m.json",
      /^--conversion-manifest is not for a stack: its manifests are read from its bucket$/,
    ],
    ["--triton a:1 --conversion-manifest m.json,m.json", /^--conversion-manifest m\.json: is named twice/],
    ["--yes-prod", /^--yes-prod goes with --stack NAME/],
    ["--replicas 1,2", /^--replicas is for a running server: name one with --triton HOST:PORT,HOST:PORT or/],
    ["--stack dev --replicas 0", /^--replicas 0: give whole numbers from 1/],
    ["--max-cost 3", /^--max-cost goes with --stack NAME/],
    ["--apply", /^--apply goes with --stack NAME/],
    ["--wire", /^--wire is for a running server: name one with --triton HOST:PORT or --stack NAME/],
    ["--stack dev --max-cost 0", /^--max-cost 0: give US dollars from 0\.01/],
    ["--stack dev --after sleep", /^--after sleep: give one of scale-to-zero/],
    ["--metrics http://a", /^--metrics is for a running server/],
  ])("%s", (line, message) => {
    expect(errors(line)).toEqual([expect.stringMatching(message)]);
  });

  it("reports all of them at once", () => {
    expect(errors("--workers 0 --variants x --seed --slo 5 --foo --load y")).toHaveLength(6);
  });

  it("never throws and never accepts a number out of range", () => {
    const word = fc.oneof(
      fc.constantFrom(
        "--seed",
        "--workers",
        "--goal-rate",
        "--slo",
        "--out",
        "--quick",
        "--load",
        "--",
        "-",
        "-1",
      ),
      fc.string(),
      fc.double().map(String),
    );
    fc.assert(
      fc.property(fc.array(word, { maxLength: 6 }), (words) => {
        const parsed = parseTuneCommandLine(words, known);
        if (parsed.kind === "invalid") expect(parsed.errors.length).toBeGreaterThan(0);
        if (parsed.kind !== "run") return;
        const { seed, workers, goalRatePerS } = parsed.options;
        expect(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32).toBe(true);
        expect(workers === null || (Number.isInteger(workers) && workers >= 1 && workers <= 64)).toBe(true);
        expect(goalRatePerS === null || goalRatePerS > 0).toBe(true);
      }),
    );
  });
});

it("--help shows options with their values, defaults, variants and exit codes", () => {
  const parsed = parse("--help --seed");
  if (parsed.kind !== "help") throw new Error("no help");
  expect(parsed.text).toContain("--slo <pQ=BOUND>");
  expect(parsed.text).toMatch(/original,\s+tftrt_fp16,\s+tftrt_int8/);
  expect(parsed.text).toContain("130  interrupted");
  expect(parsed.text).not.toContain("[N]");
});
