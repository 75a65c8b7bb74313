/** The whole program as `pulumi preview` and `pulumi up` run it: in Pulumi's own Node host, for each stack file. */
import { describe, expect, it } from "vitest";
import { runStack, runningHosts, tryStack, unknownPaths, type Recording } from "./harness";
import { hosted, preview, STACKS, up } from "./real-stack";

const shown = (recording: Recording) =>
  recording.all
    .map(({ urn, inputs, dependencies, provider }) => ({
      urn,
      inputs,
      dependencies: [...dependencies].sort(),
      provider,
    }))
    .sort((a, b) => (a.urn < b.urn ? -1 : 1));

describe.each(STACKS)("%s in Pulumi's Node host", (stack) => {
  it("previews an empty stack as inline: the same resources, the same unknowns, no warnings", async () => {
    const first = await runStack(hosted(stack, "preview"));
    expect(first.complaints).toEqual([]);
    expect(shown(first)).toEqual(shown(await preview(stack)));
    expect(first.all.some(({ inputs }) => unknownPaths(inputs).length > 0)).toBe(true);
    expect(runningHosts()).toEqual([]);
  });

  it("brings up the same as inline", async () => {
    expect(shown(await runStack(hosted(stack, "up")))).toEqual(shown(await up(stack)));
  });
});

describe("a wrong configuration", () => {
  it("ends at once with all problems and nothing registered", async () => {
    // nodejs/node#64011: with a stack trace in it, the error would keep Node 20.19.6 and later busy for a minute.
    const wrong = hosted("dev", "preview", { project: "", gpuType: "nvidia-tesla-k80", replicas: 5 });
    const failed = await tryStack({ ...wrong, timeoutS: 25 });
    expect(failed.exitCode).toBe(32);
    const [message = "", ...others] = failed.recording.complaints;
    expect(others).toEqual([]);
    for (const key of ["project", "gpuType", "replicas"]) expect(message).toContain(`  ${key}: `);
    expect(message).not.toContain("at Object.");
    expect(failed.recording.all.map(({ type }) => type)).toEqual(["pulumi:pulumi:Stack"]);
  });
});
