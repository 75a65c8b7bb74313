/** Puts a stack to sleep after a sweep, by its own configuration: servers, load workers and their nodes go, models and data stay. */
import { TargetError } from "../target-error";
import { ProposedConfig } from "./change-config";
import { runPulumi } from "./pulumi-cli";

/** @throws TargetError with the command that is left to do */
export async function scaleToZero(
  projectFolder: string,
  stack: string,
  onOutput: (text: string) => void,
): Promise<void> {
  const proposed = ProposedConfig.make(projectFolder, stack, { asleep: true });
  try {
    proposed.write();
  } finally {
    proposed.close();
  }
  const { code } = await runPulumi(
    projectFolder,
    ["up", "--stack", stack, "--yes", "--skip-preview", "--non-interactive"],
    onOutput,
  );
  if (code !== 0)
    throw new TargetError(
      `stack ${stack} could not be put to sleep and still costs money: run pulumi up --stack ${stack} (asleep is set)`,
    );
}
