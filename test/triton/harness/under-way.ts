/** A trial that can be disturbed while it is measured. */
import type { LiveRunner } from "../../../tuning/live-runner";
import type { TrialResult, TrialSpec } from "../../../tuning/trial";

/**
 * Starts a trial and waits until its load runs: what comes before, serving the model and watching it become warm, takes as long as it takes.
 * @returns the trial's result to come, in an object so that it is not waited for here
 */
export async function underWay(
  runner: LiveRunner,
  spec: TrialSpec,
): Promise<{ readonly running: Promise<TrialResult> }> {
  let begun = (): void => undefined;
  const loading = new Promise<void>((resolve) => (begun = resolve));
  const running = runner.run(spec, ({ elapsedS }) => elapsedS > 0 && begun());
  // A trial that ends before is the caller's business too.
  running.then(begun, begun);
  await loading;
  return { running };
}
