import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { openLocalTarget } from "../../targets/local";

/** Processes that this one has started and that still run. */
function children(): string[] {
  return readdirSync("/proc/self/task").flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, "utf8").split(" ").filter(Boolean),
  );
}

it("a local target that cannot be opened leaves no server, no worker and no repository behind", async () => {
  const before = children();
  const place = mkdtempSync(join(tmpdir(), "local-start-"));
  const usual = process.env["TMPDIR"];
  process.env["TMPDIR"] = place;
  onTestFinished(() => {
    if (usual === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = usual;
    rmSync(place, { recursive: true, force: true });
  });
  await expect(
    openLocalTarget({
      variants: [findVariant("original")],
      imageFolder: "/nowhere",
      workers: 1,
      timeDilation: null,
      knownDilations: new Map(),
      moreMayCome: false,
      cores: 2,
    }),
  ).rejects.toThrow(/image folder \/nowhere cannot be read/);
  // Processes are told to end, and may need a moment.
  for (let waited = 0; waited < 100 && children().length > before.length; waited++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  expect(children()).toEqual(before);
  expect(readdirSync(place).filter((name) => name.startsWith("triton-slo-repository-"))).toEqual([]);
}, 60_000);
