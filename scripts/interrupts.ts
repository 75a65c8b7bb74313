/**
 * Ctrl-C and SIGTERM for commands that end in order. npm passes a signal on to the script that it runs, which has got Ctrl-C from the terminal
 * already: what arrives shortly after the first is the same interruption, not a second one.
 */

/** Signals within this time of the first belong to it, milliseconds. A busy machine may be slow to pass one on. */
export const SAME_INTERRUPTION_MS = 1000;

/**
 * Calls `interrupted` for each interruption; `isAgain` says that there was one before, so that whoever asks twice need not wait.
 * @returns stops listening; then a signal ends the process
 */
export function onInterruption(
  interrupted: (signal: NodeJS.Signals, isAgain: boolean) => void,
  nowMs: () => number = () => performance.now(),
): () => void {
  let firstMs: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const isAgain = firstMs !== undefined;
    if (firstMs !== undefined && nowMs() - firstMs < SAME_INTERRUPTION_MS) return;
    firstMs ??= nowMs();
    interrupted(signal, isAgain);
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  return () => void process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
}
