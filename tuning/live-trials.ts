/** Trials on a real server, as the commands run them. */
import { LiveRunner, type LiveRunnerOptions } from "./live-runner";
import { askReferenceAnswers } from "./reference-answers";
import type { OpenTarget } from "./target";
import type { TuneSettings } from "./tune-settings";

/** Runs trials on the target, with the images of a folder. */
export function liveRunner(
  target: OpenTarget,
  { imageFolder, transport }: Pick<TuneSettings, "imageFolder" | "transport">,
  onWarmUp?: LiveRunnerOptions["onWarmUp"],
): LiveRunner {
  return new LiveRunner({
    target,
    imageFolder,
    transport,
    onWarmUp,
    referenceAnswers: (variant, modelName, address, signal) =>
      askReferenceAnswers(variant, modelName, address, imageFolder, signal),
  });
}
