/** The harness with Pulumi's own Node host: the same registrations as inline, and programs that go wrong. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { program } from "./fixtures/tiny/program";
import * as harness from "./harness";
import { runStack, stackConfig, tryStack, type Recording } from "./harness";

const programDir = join(__dirname, "fixtures/tiny");
const config = (overrides = {}) => stackConfig(programDir, "dev", overrides);

/** Everything a test can see of a recording, for comparing two of them. */
const contents = (recording: Recording) =>
  recording.all
    .map((registration) => ({ ...registration, sequence: 0 }))
    .sort((a, b) => (a.urn < b.urn ? -1 : 1));

/** Whether a process runs; one that ended and waits for its parent to notice does not. */
const isAlive = (pid: number): boolean => {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.trim().startsWith("Z");
};

it("is the same in Pulumi's Node host as inline", async () => {
  const inline = await runStack({ programDir, program, config: config(), mode: "up" });
  const hosted = await runStack({ programDir, config: config(), mode: "up" });
  expect(contents(hosted)).toEqual(contents(inline));
  expect(harness.runningHosts()).toEqual([]);
});

describe("programs that go wrong", () => {
  it("reports what the program threw", async () => {
    const failed = await tryStack({ programDir, config: config({ behaviour: "throw" }), mode: "up" });
    expect(failed.exitCode).toBe(32);
    expect(failed.recording.complaints.join()).toContain("thrown on purpose");
  });

  it("reports a resource that the provider refuses, and nothing that depends on it is registered", async () => {
    const failOn = ({ type }: { type: string }) =>
      type.endsWith(":NodePool") ? "googleapi: Error 403: quota" : undefined;
    const failed = await tryStack({ programDir, config: config(), mode: "up", failOn });
    expect(failed.error).toBeDefined();
    expect(failed.recording.complaints).toEqual(["googleapi: Error 403: quota"]);
    expect(failed.recording.ofType("kubernetes:apps/v1:Deployment")).toEqual([]);
  });

  it("names the time and the last resource when a program hangs, and kills it and what it has started", async () => {
    const stuck = join(__dirname, "fixtures/stuck");
    const hanging = tryStack({
      programDir: stuck,
      config: stackConfig(stuck, undefined),
      mode: "up",
      timeoutS: 4,
    });
    const error = await hanging.then(() => undefined).catch((reason: unknown) => reason as Error);
    expect(error).toBeInstanceOf(harness.ProgramTimeout);
    expect(error?.message).toContain(
      "did not end within 4 s. 1 resources registered, the last urn:pulumi:dev::stuck::pulumi:pulumi:Stack::stuck-dev",
    );
    expect(harness.runningHosts()).toEqual([]);
    const pid = Number(/grandchild (\d+)/.exec(error?.message ?? "")?.[1]);
    expect(pid).toBeGreaterThan(1);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });
});
