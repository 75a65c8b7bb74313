import { describe, expect, it } from "vitest";
import { parseLoadCommandLine, type LoadOptions } from "../../scripts/load-options";

const variants = ["original", "tftrt_fp16"];
const parse = (...words: string[]) => parseLoadCommandLine(words, variants);

function options(...words: string[]): LoadOptions {
  const parsed = parse(...words);
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.options;
}

function complaints(...words: string[]): string {
  const parsed = parse(...words);
  return parsed.kind === "invalid" ? parsed.errors.join("\n") : parsed.kind;
}

describe("loads", () => {
  it.each<[string, LoadOptions["load"]]>([
    ["", { kind: "poisson", ratePerS: 50 }],
    ["--rate 400", { kind: "poisson", ratePerS: 400 }],
    ["--rate 400 --arrivals constant", { kind: "constant", ratePerS: 400 }],
    ["--arrivals constant", { kind: "constant", ratePerS: 50 }],
    ["--ramp 0..500/1m", { kind: "ramp", fromPerS: 0, toPerS: 500, overS: 60, arrivals: "poisson" }],
    [
      "--steps 100x30s,200.5x0.5m --arrivals constant",
      {
        kind: "steps",
        steps: [
          { ratePerS: 100, forS: 30 },
          { ratePerS: 200.5, forS: 30 },
        ],
        arrivals: "constant",
      },
    ],
    ["--users 3000", { kind: "users", users: 3000, spawnPerS: 5, thinkMinS: 0.8, thinkMaxS: 1.2 }],
    [
      "--users 3 --think 2 --spawn-rate 15",
      { kind: "users", users: 3, spawnPerS: 15, thinkMinS: 2, thinkMaxS: 2 },
    ],
    ["--concurrency 16", { kind: "users", users: 16, spawnPerS: 1e6, thinkMinS: 0, thinkMaxS: 0 }],
    ["--arrivals-file log.csv", { kind: "file", file: "log.csv" }],
  ])("%s", (line, load) => {
    expect(options(...line.split(" ").filter(Boolean)).load).toEqual(load);
  });

  it("what changes by itself is measured from its first request, a steady load after a warm-up", () => {
    expect(options("--rate", "5").warmupS).toBe(3);
    expect(options("--concurrency", "5").warmupS).toBe(3);
    expect(options("--users", "5").warmupS).toBe(0);
    expect(options("--ramp", "0..5/9s").warmupS).toBe(0);
    expect(options("--ramp", "0..5/9s", "--warmup", "500ms").warmupS).toBe(0.5);
  });
});

describe("stop rule, SLO and the rest", () => {
  it("p95>100ms/10s, with ten requests beyond the quantile or as many as are said", () => {
    expect(options("--stop-when", "p95>100ms/10s").stopWhen).toEqual({
      quantile: 0.95,
      boundMs: 100,
      windowS: 10,
      minSamples: 200,
    });
    expect(options("--stop-when", "p99.9>0.2s/1m", "--min-samples", "7").stopWhen).toEqual({
      quantile: 0.999,
      boundMs: 200,
      windowS: 60,
      minSamples: 7,
    });
    expect(options().stopWhen).toBeNull();
  });

  it("everything at once", () => {
    const line =
      "--triton a:8001,dns:///b:8001 --model m --input-dims 3,299,299 --images pics --rate 9 --duration 5m --slo p90=50ms " +
      "--deadline 700ms --max-in-flight 33 --connections 2 --new-connection-per-request --tls --tls-ca ca.pem --tls-name t " +
      "--transport grpc-js --workers 3 --busy-wait-ms 1.5 --seed 8 --json out.json --csv a.csv --hdr a.hlog";
    expect(options(...line.split(" "))).toEqual({
      target: { kind: "running", addresses: ["a:8001", "dns:///b:8001"] },
      model: "m",
      inputDims: [3, 299, 299],
      images: "pics",
      load: { kind: "poisson", ratePerS: 9 },
      warmupS: 3,
      durationS: 300,
      slo: { quantile: 0.9, boundMs: 50 },
      stopWhen: null,
      deadlineMs: 700,
      maxInFlight: 33,
      connections: 2,
      newConnectionPerRequest: true,
      tls: { caFile: "ca.pem", serverName: "t" },
      transport: "grpc-js",
      workers: 3,
      busyWaitMs: 1.5,
      seed: 8,
      json: "out.json",
      hdr: "a.hlog",
      csv: "a.csv",
    });
  });

  it("--json without a file is standard output; the local server is the default", () => {
    expect(options("--json").json).toBe("-");
    expect(options().busyWaitMs).toBe(0);
    expect(options().target).toEqual({ kind: "local", variant: "original", timeDilation: 1 });
    expect(options("--variant", "tftrt_fp16", "--time-dilation", "2").target).toEqual({
      kind: "local",
      variant: "tftrt_fp16",
      timeDilation: 2,
    });
  });
});

describe("complaints, all at once and by name", () => {
  it.each<[string, RegExp]>([
    ["--busy-wait-ms 10.5", /--busy-wait-ms 10\.5: give milliseconds from 0 to 10, e\.g\. 2/],
    ["--busy-wait-ms", /--busy-wait-ms needs a value, e\.g\. --busy-wait-ms 2/],
    ["--rate fast", /--rate fast: give a rate/],
    ["--rate", /--rate needs a value, e\.g\. --rate 400/],
    ["--rate 5 --users 3 --concurrency 2", /--rate and --users and --concurrency exclude each other/],
    ["--ramp 5", /--ramp 5: give FROM\.\.TO\/TIME/],
    ["--ramp 0..0/5s", /--ramp/],
    ["--steps 100x", /--steps 100x: give RATExTIME/],
    ["--think 1..2", /--think goes with --users/],
    ["--users 5 --think 2..1", /--think 2\.\.1: give seconds/],
    ["--users 5 --arrivals constant", /--arrivals goes with --rate, --ramp and --steps/],
    ["--arrivals even", /--arrivals even: give one of poisson, constant/],
    ["--stop-when p95", /--stop-when p95: give PERCENTILE>BOUND\/WINDOW/],
    ["--stop-when p95>0ms/9s", /--stop-when p95=0ms: the bound must lie/],
    ["--min-samples 5", /--min-samples goes with --stop-when/],
    ["--variant orginal", /--variant orginal: is not a known variant; did you mean "original"\?/],
    ["--triton nohost:99999", /--triton nohost:99999: give the host and port/],
    ["--triton a:1,b", /--triton b: give the host and port/],
    ["--triton a:1 --variant original", /--variant is for the local server/],
    ["--model m", /--model is for a running server: name one with --triton/],
    ["--tls-name x", /--tls-ca and --tls-name go with --tls/],
    ["--input-dims 5 --triton a:1", /--input-dims 5: give HEIGHT,WIDTH,3/],
    ["--duration 9y", /--duration 9y: give a time/],
    ["--rate 5 --nonsense", /unknown option --nonsense/],
    ["run", /unexpected word "run"/],
  ])("%s", (line, message) => {
    expect(complaints(...line.split(" "))).toMatch(message);
  });

  it("help names every option, exit code and an example of each kind of load", () => {
    const help = parse("--help");
    if (help.kind !== "help") throw new Error("no help");
    for (const word of [
      "--triton",
      "--ramp",
      "--steps",
      "--users",
      "--concurrency",
      "--arrivals-file",
      "--stop-when",
      "--hdr",
      "130",
    ])
      expect(help.text).toContain(word);
    expect(help.text).toContain("npm run load -- --triton HOST:8001 --users 3000");
  });
});
