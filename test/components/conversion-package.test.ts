/** The zip of the convert package holds its code and nothing that a local run leaves behind. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { packageArchive } from "../../components/conversion-vm";

const source = join(__dirname, "../../model-repo/convert");

async function names(folder: string): Promise<string[]> {
  return Object.keys(await packageArchive(folder).assets);
}

it("has the package under its name, with its requirements", async () => {
  const files = await names(source);
  for (const file of [
    "__main__.py",
    "tftrt/engines.py",
    "requirements/local.txt",
    "requirements/tensorflow.txt",
  ])
    expect(files).toContain(`convert/${file}`);
  expect(files.filter((file) => !/^convert\/([a-z_0-9]+\/)*[a-z_0-9]+\.(py|txt)$/.test(file))).toEqual([]);
});

it("is the same after a local run has left caches", async () => {
  const folder = mkdtempSync(join(tmpdir(), "package-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(source, folder, { recursive: true });
  const before = await names(folder);
  mkdirSync(join(folder, "__pycache__"), { recursive: true });
  writeFileSync(join(folder, "__pycache__", "run.cpython-311.pyc"), "");
  mkdirSync(join(folder, ".venv", "lib"), { recursive: true });
  writeFileSync(join(folder, ".venv", "lib", "site.py"), "");
  writeFileSync(join(folder, "README.md"), "changed");
  expect(await names(folder)).toEqual(before);
});
