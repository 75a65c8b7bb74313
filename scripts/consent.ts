/** A question that must be answered before something that costs or changes something. */
import { createInterface } from "node:readline/promises";
import { TargetError } from "../targets/target-error";

/**
 * Asks on the terminal; anything but y or yes is a no.
 * @param yes the answer was given on the command line already
 * @throws TargetError where nobody can be asked
 */
export async function consent(question: string, yes: boolean): Promise<boolean> {
  if (yes) return true;
  if (!process.stdin.isTTY) throw new TargetError(`${question} Nobody can be asked here: give --yes if so`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
