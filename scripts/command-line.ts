/** From words to options, as all commands do it. Pure: it touches no file and never exits. */
import { CommanderError, type Command } from "commander";
import { didYouMean } from "../model-repo/nearest-name";
import { Complaints } from "./option-values";

/** What a command line asks for. */
export type CommandLine<Options> =
  | { readonly kind: "run"; readonly options: Options }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "invalid"; readonly errors: readonly string[] };

/**
 * Parses the words after the command's name.
 * @param read takes the options from the parsed command; with a complaint its result is not used
 */
export function parseCommandLine<Options>(
  command: Command,
  words: readonly string[],
  read: (complaints: Complaints) => Options,
): CommandLine<Options> {
  let help = "";
  command.exitOverride().configureOutput({ writeOut: (text) => (help += text), writeErr: () => {} });
  try {
    command.parse(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? { kind: "help", text: help } : { kind: "invalid", errors: [error.message] };
  }
  const complaints = new Complaints();
  const options = read(complaints);
  return complaints.list.length > 0 ? { kind: "invalid", errors: complaints.list } : { kind: "run", options };
}

/** Unknown options and words that belong to none, of a command that allows them so that they are reported with all other complaints. */
export function complainAboutStrangers(command: Command, complaints: Complaints): void {
  const known = command.options.map((option) => option.long ?? "");
  for (const [index, word] of command.args.entries()) {
    const before = command.args[index - 1] ?? "";
    if (word.startsWith("-")) {
      const name = word.split("=")[0] ?? word;
      complaints.list.push(`unknown option ${name}${didYouMean(name, known)} See --help.`);
    } else if (!before.startsWith("-")) {
      complaints.list.push(`unexpected word "${word}": every value follows its option. See --help.`);
    }
  }
}
