/** Writes a recommendation into a stack's configuration, after its preview. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { keyPrefix } from "../stack/stack-file";
import { ProposedConfig, type ConfigChange } from "../targets/stack/change-config";
import { TargetError } from "../targets/target-error";
import { errorCode } from "../tuning/results/results-error";
import { recommendationFileName } from "../tuning/results/results-folder";
import { consent } from "./consent";

const fileSchema = z.object({ config: z.record(z.string().startsWith(keyPrefix), z.json()) });

/** Settings of a folder's recommendation.yaml by key, without the prefix. @throws TargetError */
export function readRecommendation(folder: string): ConfigChange {
  const path = join(folder, recommendationFileName);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new TargetError(`${path} does not exist: the folder holds no finished sweep with a winner`);
  }
  const parsed = fileSchema.safeParse(parse(text));
  if (!parsed.success) throw new TargetError(`${path}: ${z.prettifyError(parsed.error)}`);
  return Object.fromEntries(
    Object.entries(parsed.data.config).map(([key, value]) => [key.slice(keyPrefix.length), value]),
  );
}

/** What the program says of a variant whose folder in the bucket has no model files: one that nobody named before. */
const noModelYet = /convert the model first/;

function convertFirst(stack: string): string {
  return [
    "Written. The bucket has no model files for this variant yet. Next:",
    `  pulumi config set asleep true --stack ${stack} && pulumi up --stack ${stack}     # its configuration and the conversion plan`,
    `  eval "$(pulumi stack output --json --stack ${stack} | jq -r .conversionVm.startCommand)"     # copies its artefact`,
    `  pulumi config set asleep false --stack ${stack} && pulumi up --stack ${stack}`,
    "",
  ].join("\n");
}

/**
 * Shows what changes in the stack's configuration and what an update would do, asks, and writes. The update itself is the user's.
 * @returns false when there was nothing to change, or the answer was no
 * @throws TargetError
 */
export async function applyRecommendation(
  folder: string,
  stack: string,
  yes: boolean,
  print: (text: string) => void,
): Promise<boolean> {
  const proposed = ProposedConfig.make(process.cwd(), stack, readRecommendation(folder));
  try {
    if (proposed.differences.length === 0) {
      print(`The configuration of stack ${stack} is what ${folder} recommends already.\n`);
      return false;
    }
    print(
      `Configuration of stack ${stack}:\n${proposed.differences.map((line) => `  ${line}\n`).join("")}\n`,
    );
    const { code, text } = await proposed.preview(stack, print);
    const lacksModel = code !== 0 && noModelYet.test(text);
    if (code !== 0 && !lacksModel)
      throw new TargetError(
        `the preview failed, so nothing was written: put right what it says, then run npm run apply`,
      );
    if (!(await consent(`Write this into the configuration of stack ${stack}?`, yes))) {
      print("Nothing was written.\n");
      return false;
    }
    proposed.write();
    if (lacksModel) {
      print(convertFirst(stack));
      return true;
    }
    print(`Written. Next: pulumi up --stack ${stack}, then npm run verify -- ${folder} --stack ${stack}\n`);
    return true;
  } finally {
    proposed.close();
  }
}
