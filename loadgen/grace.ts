/** How long the load generator's processes take to end while a measurement runs. */
import { InvalidArgumentError } from "commander";

/** Seconds. Kubernetes kills a pod 30 s after SIGTERM if nothing else is said; the rest is for handing the result over. */
export const DEFAULT_GRACE_S = 20;

/** @throws InvalidArgumentError for anything but seconds from 0 on */
export function parseGraceS(text: string): number {
  const seconds = Number(text);
  if (text.trim() === "" || !(seconds >= 0 && seconds <= 3600))
    throw new InvalidArgumentError("A grace is a number of seconds from 0 to 3600.");
  return seconds;
}
