/** `npm run load` as a process, against a local server that runs already and against one of its own. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { catalogue } from "../../model-repo/catalogue";
import { writeRepository } from "../../model-repo/write-repository";
import { LocalServer } from "../../targets/local-server";
import { GrpcServer } from "../loadgen/support/grpc-server";

const project = join(__dirname, "../..");
let folder: string;
let server: LocalServer;

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Json {
  readonly spec: { readonly shape: { readonly kind: string } };
  readonly slo: { readonly verdict: string };
  readonly result: {
    readonly total: { readonly planned: number; readonly ok: number; readonly failed: number };
    readonly stop: {
      readonly reason: string;
      readonly finding: unknown;
      readonly interrupted?: boolean;
    } | null;
    readonly valid: boolean;
    readonly perAddress: Record<string, number>;
  };
}

const direct = [process.execPath, "--import", "tsx", "scripts/load.ts"] as const;
const throughNpm = ["npm", "run", "--silent", "load", "--"] as const;

/** @param interrupt given the process, which leads a group of its own, 1.5 s after the measuring began */
function load(
  words: readonly string[],
  interrupt: (child: ChildProcess) => void = () => undefined,
  [program, ...before]: readonly [string, ...string[]] = direct,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program, [...before, ...words], { cwd: project, detached: true });
    onTestFinished(() => {
      try {
        process.kill(-child.pid!, "SIGKILL");
      } catch {
        // Nothing is left of it.
      }
    });
    const text = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].on("data", (chunk: Buffer) => (text[name] += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => {
      if (chunk.includes("measuring")) setTimeout(() => interrupt(child), 1500);
    });
    child.once("exit", (code) => resolve({ code, ...text }));
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "load-command-"));
  const variant = catalogue[1]!;
  await writeRepository([variant], folder);
  server = await LocalServer.start({
    repository: folder,
    modelName: variant.name,
    executor: "simulated-t4",
    timeDilation: 1,
    metricsIntervalMs: 1000,
  });
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

/** An SLO that even a busy machine holds, so that what is tested is the command. */
const easy = ["--slo", "p95=20s", "--deadline", "60s"];
const running = (...words: string[]): string[] => ["--triton", server.grpcAddress, ...easy, ...words];
const planned = (json: string): number => (JSON.parse(json) as Json).result.total.planned;

describe("loads", () => {
  it.each([
    ["constant", ["--rate", "20", "--arrivals", "constant", "--warmup", "0s", "--duration", "2s"], 40],
    ["a ramp", ["--ramp", "0..40/2s", "--arrivals", "constant"], 40],
    ["steps", ["--steps", "10x1s,30x1s", "--arrivals", "constant", "--new-connection-per-request"], 40],
  ])("%s: exactly what was planned", async (_, words, count) => {
    const { code, stdout, stderr } = await load(running(...words, "--json"));
    // A machine so busy that its own lateness spoils the figures says so instead.
    if (code !== 4) expect(stderr).toMatch(/^SLO +p95 <= 20000 ms held/m);
    expect([0, 4]).toContain(code);
    expect(planned(stdout)).toBe(count);
  });

  it("recorded arrivals, over grpc-js, with all outputs as files", async () => {
    const [arrivals, json, csv, hdr] = ["a.csv", "r.json", "r.csv", "r.hlog"].map((name) =>
      join(folder, name),
    );
    await writeFile(arrivals!, "time\n1000.5\n1000.7\n1001.9\n1002\n");
    const { code, stdout } = await load(
      running(
        "--arrivals-file",
        arrivals!,
        "--transport",
        "grpc-js",
        "--json",
        json!,
        "--csv",
        csv!,
        "--hdr",
        hdr!,
      ),
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/4 recorded arrivals for 2\.5 s/);
    expect(planned(await readFile(json!, "utf8"))).toBe(4);
    expect((await readFile(csv!, "utf8")).split("\n").length).toBeGreaterThan(2);
    expect(await readFile(hdr!, "utf8")).toMatch(/HISTF/);
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s during concurrency on a server of its own: a result of the time until then, marked as ended early, in all outputs",
    async (signal) => {
      const csv = join(folder, "interrupted.csv");
      const { code, stdout, stderr } = await load(
        ["--concurrency", "3", "--duration", "10m", "--warmup", "0s", ...easy, "--json", "--csv", csv],
        (child) => child.kill(signal),
      );
      const { result, slo } = JSON.parse(stdout) as Json;
      expect(stderr).toMatch(new RegExp(`^stopped .*interrupted \\(${signal}\\)$`, "m"));
      expect(stderr).toMatch(/^invalid +ended early, after \d+\.\d s of 600\.0 s/m);
      expect(result).toMatchObject({ valid: false, stop: { finding: null, interrupted: true } });
      expect(slo.verdict).toBe("unknown");
      expect(result.total.ok).toBeGreaterThan(3);
      expect((await readFile(csv, "utf8")).split("\n").length).toBeGreaterThan(2);
      expect(code).toBe(130);
    },
  );

  it.each<[string, (npm: ChildProcess) => void]>([
    ["SIGTERM to npm alone, as a container runtime sends it", (npm) => npm.kill("SIGTERM")],
    [
      "Ctrl-C, which reaches npm and the load, and the load again from npm",
      ({ pid }) => process.kill(-pid!, "SIGINT"),
    ],
  ])("npm run load, %s: one interruption, no process left over", async (_, interrupt) => {
    // The answers take longer than npm needs to pass a signal on: a second interruption would not wait for them.
    const words = ["--concurrency", "2", "--duration", "10m", "--warmup", "0s", "--json"];
    let group = 0;
    const { code, stdout } = await load(
      running(...words),
      (npm) => {
        group = npm.pid!;
        interrupt(npm);
      },
      throughNpm,
    );
    const { result } = JSON.parse(stdout) as Json;
    expect(result).toMatchObject({ stop: { interrupted: true } });
    expect(result.total.ok).toBe(result.total.planned);
    expect(code).toBe(130);
    expect(() => process.kill(-group, 0)).toThrow("ESRCH");
  });
});

describe("exit codes", () => {
  it("3: a bound that no server holds; the stop rule ends users who would go on for minutes", async () => {
    const words = ["--users", "200", "--spawn-rate", "50", "--duration", "5m"];
    const { code, stdout, stderr } = await load([
      ...["--triton", server.grpcAddress, "--slo", "p95=2s", ...words],
      ...["--stop-when", "p95>1ms/2s", "--min-samples", "20", "--json"],
    ]);
    expect(stderr).toMatch(/^stopped +after \d+\.\d s: p95 of the last 2 s was \d/m);
    // A machine so busy that its own lateness spoils the figures says so instead.
    expect([3, 4]).toContain(code);
    expect((JSON.parse(stdout) as Json).result.stop!.finding).not.toBeNull();
  });

  it("2: what cannot be asked for, a server that is none, a model that is not there", async () => {
    const nobody = await GrpcServer.listen();
    const { address } = nobody;
    await nobody.close();
    for (const [words, message] of [
      [["--rate", "0"], /--rate 0: give a rate/],
      [["--triton", address], /does not answer as a Triton/],
      [["--triton", server.grpcAddress, "--model", "nonsense"], /nonsense/],
      [running("--arrivals-file", "/no/such/file"), /--arrivals-file \/no\/such\/file cannot be read/],
      // Before the load, not after it.
      [
        running("--json", "/no/such/folder/x.json"),
        /^load: --json \/no\/such\/folder\/x\.json cannot be written/,
      ],
      [running("--images", "/no/such/folder"), /image folder \/no\/such\/folder cannot be read/],
    ] as const) {
      const { code, stderr } = await load(words);
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/unexpected/);
      expect(code).toBe(2);
    }
  });
});
