/** Command line of `npm run convert`. Pure. */
import { Command } from "commander";
import { defaultOnnxFolder } from "../model-repo/onnx-models";
import { parseCommandLine, type CommandLine } from "./command-line";
import { type Complaints, numberOf, textOf, type Raw } from "./option-values";

export type ConvertOptions =
  | { readonly kind: "local"; readonly folder: string; readonly withResnet50: boolean }
  | {
      readonly kind: "stack";
      readonly stack: string;
      /** Seconds between two looks at the machine. */
      readonly everyS: number;
    };

export type ConvertCommandLine = CommandLine<ConvertOptions>;

interface RawOptions {
  local?: true;
  out?: Raw;
  withResnet50?: true;
  stack?: Raw;
  every?: Raw;
}

const exitCodeHelp = `
Exit codes:
    0  converted, or nothing had changed
    1  unexpected error
    2  bad option, or a conversion that is refused; the message says how to go on
    4  some artefacts could not be made; the others were
  130  interrupted; a conversion on a stack's machine goes on without this command`;

/** Parses the words after `convert`. */
export function parseConvertCommandLine(words: readonly string[]): ConvertCommandLine {
  const command = new Command("convert")
    .description(
      "Makes models that can be served.\n" +
        "--local: real ONNX classifiers for this machine's CPU, from public weights (needs Python 3.10 to 3.12; 100 MB of downloads).\n" +
        "--stack: starts the stack's conversion VM, follows it and waits.",
    )
    .option("--local", "prepare models for this machine")
    .option("--out [DIR]", `folder to make with --local (default: ${defaultOnnxFolder})`)
    .option(
      "--with-resnet50",
      "with --local: also a full-size ResNet-50 without trained weights, for its load",
    )
    .option("--stack [NAME]", "convert on the machine of this Pulumi stack")
    .option("--every [SECONDS]", "with --stack: how often to look (default: 10)")
    .addHelpText("after", exitCodeHelp)
    .configureHelp({ optionTerm: (option) => option.flags.replace("[", "<").replace("]", ">") });
  return parseCommandLine(command, words, (complaints) =>
    readOptions(command.opts<RawOptions>(), complaints),
  );
}

function readOptions(raw: RawOptions, complaints: Complaints): ConvertOptions {
  const stack = textOf(raw.stack, "--stack", "dev", complaints);
  const folder = textOf(raw.out, "--out", defaultOnnxFolder, complaints);
  const every = textOf(raw.every, "--every", "10", complaints);
  const rule = { min: 0.01, max: 3600, integer: false, fix: "a number of seconds, e.g. 10" };
  const everyS = every === null ? 10 : (numberOf(every, "--every", rule, complaints) ?? 10);
  const complain = (text: string): void => void complaints.list.push(text);
  if (raw.local && raw.stack !== undefined) complain("--local and --stack exclude each other: choose one");
  if (!raw.local && raw.stack === undefined)
    complain("say where: --local, or --stack NAME (e.g. --stack dev)");
  if (!raw.local && raw.out !== undefined) complain("--out goes with --local only");
  if (!raw.local && raw.withResnet50) complain("--with-resnet50 goes with --local only");
  if (raw.stack === undefined && raw.every !== undefined) complain("--every goes with --stack only");
  return raw.local
    ? { kind: "local", folder: folder ?? defaultOnnxFolder, withResnet50: raw.withResnet50 ?? false }
    : { kind: "stack", stack: stack ?? "", everyS };
}
