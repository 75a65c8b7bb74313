/** examples/gpu/start.sh with a stand-in for Triton: a server that dies is started again, and never when that is over. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { freePorts } from "../free-ports";
import { FakeBundle, until } from "./fake-bundle";

async function ports(): Promise<NodeJS.ProcessEnv> {
  const [http, grpc, metrics] = await freePorts(3);
  return { HTTP_PORT: String(http), GRPC_PORT: String(grpc), METRICS_PORT: String(metrics) };
}

describe("the server beside a command", () => {
  it("is started again when it crashes; every start keeps its log, and the command's exit code counts", async () => {
    const bundle = new FakeBundle();
    const { ended } = bundle.start(
      "start.sh",
      ["bash", "-c", "touch $BUNDLE/up; while [ ! -e $BUNDLE/done ]; do sleep 0.05; done; exit 7"],
      await ports(),
    );
    const log = join(bundle.folder, "triton.log");
    await until(() => existsSync(join(bundle.folder, "up")));
    bundle.touch("crash");
    await until(() => bundle.running().length === 0);
    bundle.remove("crash");
    await until(() => bundle.running().length === 1);
    bundle.touch("done");
    const { code, text } = await ended;
    expect(code, text).toBe(7);
    expect(text).toContain(`the server ended with exit code 139; the last lines of ${log}:`);
    expect(text).toMatch(/about to crash\nstart\.sh: it is started again \(1 of at most 5 times\)/);
    expect(readFileSync(log, "utf8")).toContain("about to crash");
    expect(readFileSync(`${log}.2`, "utf8")).toContain("serves");
    expect(bundle.running()).toEqual([]);
  });

  it("is killed and started again when it hangs", async () => {
    const bundle = new FakeBundle();
    const { ended } = bundle.start(
      "start.sh",
      ["bash", "-c", "touch $BUNDLE/up; while [ ! -e $BUNDLE/done ]; do sleep 0.05; done"],
      { ...(await ports()), SILENT_S: "1" },
    );
    await until(() => existsSync(join(bundle.folder, "up")));
    const [hung] = bundle.running() as [number];
    process.kill(hung, "SIGSTOP");
    await until(() => bundle.servers().length === 2 && !bundle.running().includes(hung));
    bundle.touch("done");
    const { code, text } = await ended;
    expect(code, text).toBe(0);
    expect(text).toMatch(/the server has not answered for \d+ s: it is killed/);
    expect(text).toContain("it is started again (1 of at most 5 times)");
    expect(bundle.running()).toEqual([]);
  });

  it("is given up after so many restarts: the command is stopped, and the error says where the logs are", async () => {
    const bundle = new FakeBundle();
    const { ended } = bundle.start(
      "start.sh",
      ["bash", "-c", "trap 'echo stopped; exit 1' TERM; touch $BUNDLE/crash; while :; do sleep 0.05; done"],
      { ...(await ports()), MOST_RESTARTS: "1" },
    );
    const { code, text } = await ended;
    expect(code, text).toBe(3);
    expect(text).toMatch(
      /stopped\nstart\.sh: the server ended 2 times and is not started again: its logs are/,
    );
    expect([bundle.servers().length, bundle.running()]).toEqual([2, []]);
  });

  it("ends with the script, which lets the command end in order, and is not started again", async () => {
    const bundle = new FakeBundle();
    const { child, ended } = bundle.start(
      "start.sh",
      ["bash", "-c", "trap 'echo in order; exit 4' TERM; touch $BUNDLE/up; while :; do sleep 0.05; done"],
      await ports(),
    );
    await until(() => existsSync(join(bundle.folder, "up")));
    child.kill("SIGTERM");
    const { code, text } = await ended;
    expect([code, text]).toEqual([4, expect.stringContaining("in order")]);
    expect([bundle.servers().length, bundle.running()]).toEqual([1, []]);
  });

  it("is not tried again when it does not come up", async () => {
    const bundle = new FakeBundle();
    bundle.touch("crash");
    const { code, text } = await bundle.start("start.sh", ["true"], await ports()).ended;
    expect([code, bundle.servers().length], text).toEqual([2, 1]);
    expect(text).toMatch(/about to crash[^]*the server ended at its start; its whole log is \S+triton\.log/);
  });
});
