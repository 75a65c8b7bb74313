/** examples/gpu/side-by-side.sh with stand-ins for Triton and the tune command: divided, attached to, cut off, and gone on with elsewhere. */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { gridVariants } from "../../examples/gpu/grids";
import { freePorts } from "../free-ports";
import { FakeBundle, killGroup, until } from "./fake-bundle";

/** A first port with room for two GPUs' servers. */
async function firstPort(): Promise<string> {
  const [port] = await freePorts(1);
  return String(port);
}

function run(bundle: FakeBundle, port: string, results: string, env: NodeJS.ProcessEnv = {}) {
  const folder = join(bundle.folder, results);
  const archive = join(bundle.folder, "results.tgz");
  const started = bundle.start("side-by-side.sh", [folder, archive, "explore", "grid", "grid20"], {
    ...{ GPUS: "2", HTTP_PORT: port, WORKERS: "1" },
    ...env,
  });
  const pid = (): number => Number(readFileSync(join(folder, "pid"), "utf8"));
  return { ...started, folder, archive, pid };
}

const filesIn = (archive: string): string[] =>
  spawnSync("tar", ["tzf", archive], { encoding: "utf8" }).stdout.split("\n");

describe("two GPUs side by side", () => {
  it("measure everything once, each on its GPU; a second call at once waits for the first one's run", async () => {
    const bundle = new FakeBundle();
    const port = await firstPort();
    const first = run(bundle, port, "results");
    await until(() => bundle.calls().length === 2);
    bundle.drivers.push(first.pid());
    const second = await run(bundle, port, "results", { WAIT_S: "2" }).ended;
    expect(second.code, second.text).toBe(4);
    expect(second.text).toMatch(/the run is going already[^]*the run is still going: the same command waits/);
    expect([bundle.calls().length, bundle.running().length]).toEqual([2, 2]);
    bundle.touch("go");
    const { code, text } = await first.ended;
    expect(code, text).toBe(0);
    expect(text).toMatch(/\[gpu2\] all parts are finished[^]*all is measured/);
    const calls = bundle.calls();
    expect(calls.filter(({ words }) => words.includes("/explore ")).map(({ gpu }) => gpu)).toEqual(["0"]);
    expect(new Set(calls.map(({ gpu }) => gpu))).toEqual(new Set(["0", "1"]));
    const measured = calls.flatMap(({ words }) => {
      const file = /--variants-file (\S+variants-grid(-2)?\.yaml)/.exec(words)?.[1];
      return file === undefined ? [] : (parse(readFileSync(file, "utf8")) as { name: string }[]);
    });
    expect(measured.map(({ name }) => name).sort()).toEqual(
      gridVariants("grid")
        .map(({ name }) => name)
        .sort(),
    );
    expect(filesIn(first.archive)).toEqual(
      expect.arrayContaining(["./division", "./gpu1/explore/result.json", "./gpu2/grid/points.jsonl"]),
    );
    expect(bundle.running()).toEqual([]);
    const again = await run(bundle, port, "results").ended;
    expect([again.code, bundle.calls().length], again.text).toEqual([0, calls.length]);
  });

  it("go on from the archive in an empty folder, divided in the same way", async () => {
    const bundle = new FakeBundle();
    const port = await firstPort();
    const first = run(bundle, port, "results");
    await until(() => bundle.calls().length === 2);
    bundle.drivers.push(first.pid());
    // Packs what there is.
    expect((await run(bundle, port, "results", { WAIT_S: "0" }).ended).code).toBe(4);
    // As a machine goes.
    killGroup(first.pid());
    expect(await first.ended).toEqual({
      code: 4,
      text: expect.stringContaining("the run was killed") as string,
    });
    await until(() => bundle.running().length === 0);
    rmSync(first.folder, { recursive: true });
    bundle.touch("go");
    const second = run(bundle, port, "elsewhere");
    const { code, text } = await second.ended;
    expect(code, text).toBe(0);
    expect(text).toMatch(/goes on from \S+results\.tgz/);
    const [one, other] = [bundle.calls().slice(0, 2), bundle.calls().slice(2)];
    for (const { gpu, words } of one) {
      const [, part] = / --out \S+\/(\S+) /.exec(words)!;
      const resumed = other.filter((call) => call.gpu === gpu && call.words.includes(`/${part} --resume `));
      expect(resumed, part).toHaveLength(1);
      const points = join(second.folder, `gpu${Number(gpu) + 1}`, part!, "points.jsonl");
      expect(readFileSync(points, "utf8")).toBe("a trial\na trial\n");
    }
  });

  it("end in order when the run is told to, and by their time limit, with more to do", async () => {
    const bundle = new FakeBundle();
    const port = await firstPort();
    const first = run(bundle, port, "results");
    await until(() => bundle.calls().length === 2);
    process.kill(first.pid(), "SIGTERM");
    const { code, text } = await first.ended;
    expect(code, text).toBe(4);
    expect(text).toContain("there is more to do");
    expect(readFileSync(join(first.folder, "gpu1/explore/result.json"), "utf8")).toContain("interrupted");
    expect([bundle.calls().length, bundle.running()]).toEqual([2, []]);
    const late = await run(bundle, port, "results", { LIMIT_S: "20" }).ended;
    expect([late.code, bundle.servers().length], late.text).toEqual([4, 2]);
  });

  it("take up what a crashed server left, and refuse other parts than the folder is for", async () => {
    const bundle = new FakeBundle();
    const port = await firstPort();
    const first = run(bundle, port, "results", { MOST_RESTARTS: "0" });
    await until(() => bundle.calls().length === 2);
    bundle.drivers.push(first.pid());
    bundle.touch("crash");
    await until(() => bundle.running().length === 0);
    bundle.remove("crash");
    bundle.touch("go");
    const { code, text } = await first.ended;
    expect(code, text).toBe(0);
    expect(text).toMatch(/gpu\d: ended with 3 after \d+ s \(try 1 of 4\)/);
    const folder = join(bundle.folder, "results");
    const other = await bundle.start("side-by-side.sh", [folder, first.archive, "path"], { GPUS: "2" }).ended;
    expect([other.code, other.text]).toEqual([2, expect.stringMatching(/is for explore grid grid20: leave/)]);
  });
});
