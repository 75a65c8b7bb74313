/** Runs a command with few options: its exit codes and its way of reporting errors are those of all commands. */
import { CommanderError, type Command } from "commander";
import { exitCodes, type ExitCode } from "./exit-codes";
import { isInputError } from "./input-errors";
import { TargetError } from "../targets/target-error";

/** An option that must be given. @throws TargetError that shows how */
export function needed<T>(value: T | undefined, option: string, example: string): T {
  if (value !== undefined) return value;
  throw new TargetError(`${option} is missing: give it, e.g. ${option} ${example}`);
}

/** Parses the command line, runs the job and sets the exit code. */
export function runThinCommand<Options extends object>(
  command: Command,
  job: (words: readonly string[], options: Options) => Promise<ExitCode>,
): void {
  const name = command.name();
  command.exitOverride().configureOutput({
    outputError: (text, write) => write(`${name}: ${text.replace(/^error: /, "").trimEnd()}. See --help.\n`),
  });
  void (async () => {
    try {
      command.parse();
      process.exitCode = await job(command.args, command.opts<Options>());
    } catch (error) {
      if (error instanceof CommanderError) {
        process.exitCode = error.exitCode === 0 ? exitCodes.ok : exitCodes.badInput;
      } else if (isInputError(error)) {
        process.stderr.write(`${name}: ${error.message.replaceAll("\n", `\n${name}: `)}\n`);
        process.exitCode = exitCodes.badInput;
      } else {
        const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
        process.stderr.write(`${name}: unexpected error: ${text}\n`);
        process.exitCode = exitCodes.unexpected;
      }
    }
  })();
}
