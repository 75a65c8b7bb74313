/** Parts of convert: GPU types, and the Python environment of convert on this machine. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { computeCapability, gpuMismatch } from "../../scripts/conversion/compute-capability";
import { PythonError, pythonWith } from "../../scripts/python-environment";
import { useFakeTools } from "./fake-tools";

const checkout = resolve(__dirname, "..", "..");
const fake = useFakeTools();

const calls = () => readFileSync(join(fake.folder, "calls"), "utf8").split("\n");

describe("GPU types", () => {
  it("match by compute capability, or by name when it is not known", () => {
    expect(gpuMismatch("nvidia-tesla-t4", "nvidia-tesla-t4")).toBeNull();
    expect(gpuMismatch("nvidia-tesla-a100", "nvidia-a100-80gb")).toBeNull();
    expect(gpuMismatch("nvidia-new", "nvidia-new")).toBeNull();
    expect(gpuMismatch("nvidia-new", "nvidia-tesla-t4")).toContain(
      "nvidia-new do not load on nvidia-tesla-t4",
    );
    expect(gpuMismatch(null, "nvidia-l4")).toContain("has no GPU");
  });

  it("are the same on the conversion VM", () => {
    const text = readFileSync(join(checkout, "model-repo", "convert", "gpu.py"), "utf8");
    const entries = [...text.matchAll(/"(nvidia-[a-z0-9-]+)": "(\d\.\d)"/g)].map(([, type, value]) => [
      type,
      value,
    ]);
    expect(Object.fromEntries(entries)).toEqual(computeCapability);
  });
});

describe("Python environment", () => {
  /** A Python of this version whose venv and pip do as they are told. */
  function python(version: string, pip = ":"): NodeJS.ProcessEnv {
    fake.tool("pip", `echo "pip $*" >> "$W/calls"\n${pip}`);
    fake.tool(
      "python3",
      `echo "python3 $*" >> "$W/calls"
case "$*" in
  -c*) echo ${version} ;;
  *venv*) mkdir -p "$3/bin" && cp "$W/bin/pip" "$3/bin/python" ;;
esac`,
    );
    return {
      ...process.env,
      PATH: `${join(fake.folder, "bin")}${delimiter}${process.env.PATH}`,
      PYTHON: "python3",
      TRITON_SLO_TOOLS_CACHE: join(fake.folder, "cache"),
    };
  }

  it("is made once, from pinned and hashed requirements", async () => {
    const env = python("3.11.7");
    const said: string[] = [];
    const first = await pythonWith("local", (text) => said.push(text), env);
    expect(existsSync(first)).toBe(true);
    expect(said[0]).toMatch(/installing \d+ Python packages into /);
    const install = calls().find((call) => call.startsWith("pip"));
    expect(install).toMatch(/-m pip install .*--require-hashes --no-deps .*requirements\/local\.txt/);
    const before = calls().length;
    expect(await pythonWith("local", () => {}, env)).toBe(first);
    expect(calls().length).toBe(before + 1);
    expect(await pythonWith("local", () => {}, python("3.12.1"))).not.toBe(first);
  });

  it("that cannot be filled leaves nothing behind and says why", async () => {
    const env = python("3.11.7", "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1");
    await expect(pythonWith("local", () => {}, env)).rejects.toThrow(
      /cannot be made: .*DO NOT MATCH THE HASHES/,
    );
    expect(readdirSync(join(fake.folder, "cache"))).toEqual([]);
  });

  it.each(["3.9.18", "3.13.0", "2.7.18"])("is not made with Python %s", async (version) => {
    const made = pythonWith("local", () => {}, python(version));
    await expect(made).rejects.toThrow(PythonError);
    await expect(made).rejects.toThrow(`Python 3.10 to 3.12 with venv is needed (python3: ${version})`);
  });

  it("pins every requirement with a hash", () => {
    const requirements = join(checkout, "model-repo", "convert", "requirements");
    for (const file of readdirSync(requirements).filter((name) => name.endsWith(".txt"))) {
      const entries = readFileSync(join(requirements, file), "utf8").split(/\n(?=[a-zA-Z0-9])/);
      for (const entry of entries)
        expect(entry, file).toMatch(/^[a-zA-Z0-9._-]+==\S+[^]*--hash=sha256:[0-9a-f]{64}/);
    }
  });
});
