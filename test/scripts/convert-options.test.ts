/** The command line of convert. */
import { describe, expect, it } from "vitest";
import { parseConvertCommandLine } from "../../scripts/convert-options";

describe("convert options", () => {
  it("prepare models for this machine", () => {
    expect(parseConvertCommandLine(["--local"])).toEqual({
      kind: "run",
      options: { kind: "local", folder: "onnx-models", withResnet50: false },
    });
    expect(parseConvertCommandLine(["--local", "--out", "m", "--with-resnet50"])).toMatchObject({
      options: { folder: "m", withResnet50: true },
    });
  });

  it("convert on a stack's machine", () => {
    expect(parseConvertCommandLine(["--stack", "dev", "--every", "2"])).toEqual({
      kind: "run",
      options: { kind: "stack", stack: "dev", everyS: 2 },
    });
  });

  it.each([
    [[], /say where: --local, or --stack NAME/],
    [["--stack"], /--stack/],
    [["--local", "--stack", "dev"], /exclude each other/],
    [["--stack", "dev", "--out", "x"], /--out goes with --local only/],
    [["--stack", "dev", "--with-resnet50"], /--with-resnet50 goes with --local only/],
    [["--local", "--every", "3"], /--every goes with --stack only/],
    [["--stack", "dev", "--every", "soon"], /--every/],
    [["--lokal"], /--lokal/],
  ])("%j is refused", (words, message) => {
    const parsed = parseConvertCommandLine(words);
    expect(parsed.kind === "invalid" ? parsed.errors.join("\n") : "").toMatch(message);
  });

  it("help names every option and exit code", () => {
    const parsed = parseConvertCommandLine(["--help"]);
    expect(parsed.kind === "help" ? parsed.text : "").toMatch(/--local[^]*--stack[^]*Exit codes:[^]* 4 /);
  });
});
