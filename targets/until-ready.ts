/** Waits for a server that nobody here can start: it may come back by itself, or somebody restarts it. */
import { KserveError, type KserveClient } from "../kserve/client";
import { GrpcStatusCode } from "../kserve/status";
import { TargetGone, type RecoveryWatch } from "../tuning/target";

/** Within this a server is restarted, with some of the models that it loads at its start; seconds. */
const PATIENCE_S = 120;
const POLL_MS = 500;
/** Of one question, milliseconds: a server under load answers late. */
const DEADLINE_MS = 5000;
const TELL_EVERY_MS = 5000;

/** What the gRPC library says about a connection, without its own words around it. */
export function connectionReason(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (Error: )?/, "")
    .replace(/\. Resolution note: .*$/s, "")
    .replace(/ \([\dT:.Z-]+\)$/, "");
}

/** Whether it answers at all, ready or not. */
export async function answers(client: KserveClient): Promise<boolean> {
  return client.serverReady({ deadlineMs: DEADLINE_MS }).then(
    () => true,
    () => false,
  );
}

/**
 * Returns as soon as the server is ready.
 * @param patienceS default two minutes
 * @throws TargetGone when it did not answer any more at the end of that; Error when it answered but was not ready, or when the watch ended
 *   the wait
 */
export async function untilReady(
  client: KserveClient,
  { signal, onWaiting }: RecoveryWatch = {},
  patienceS = PATIENCE_S,
): Promise<void> {
  const since = performance.now();
  let told = since;
  for (;;) {
    const state = await stateOf(client, signal);
    if (state === "ready") return;
    const now = performance.now();
    const waitedS = Math.round((now - since) / 1000);
    if (now - since > 1000 * patienceS) {
      if (state === "not ready")
        throw new Error(`${client.address} answers, but was not ready for ${waitedS} s`);
      throw new TargetGone(
        `${state.gone} at ${client.address} any more; given up after ${waitedS} s. Start the server again, then --resume goes on`,
      );
    }
    if (now - told >= TELL_EVERY_MS) {
      told = now;
      const what = state === "not ready" ? "it is not ready" : `${state.gone} there`;
      onWaiting?.(`waiting for ${client.address} since ${waitedS} s: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

type State = "ready" | "not ready" | { readonly gone: string };

async function stateOf(client: KserveClient, signal: AbortSignal | undefined): Promise<State> {
  try {
    return (await client.serverReady({ deadlineMs: DEADLINE_MS, signal })) ? "ready" : "not ready";
  } catch (error) {
    if (!(error instanceof KserveError)) throw error;
    if (/ECONNREFUSED/.test(error.details)) return { gone: "nothing listens" };
    if (error.status === GrpcStatusCode.DEADLINE_EXCEEDED) return { gone: "nothing answers" };
    return { gone: `nothing can be reached (${connectionReason(error.details)})` };
  }
}
