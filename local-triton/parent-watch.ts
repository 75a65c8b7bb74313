import { fstatSync } from "node:fs";

const POLL_MS = 250;
/** Read when the program starts: a parent that ends during the start is noticed too. */
const parent = process.ppid;

/**
 * Calls `onGone` once when the process that started this one is gone: its end of a stdin pipe closes, or this process gets
 * another parent. (The pipe also works through a launcher that stands between the two.)
 */
export function watchParent(onGone: () => void): void {
  let told = false;
  const tell = (): void => {
    if (told) return;
    told = true;
    onGone();
  };
  setInterval(() => {
    if (process.ppid !== parent) tell();
  }, POLL_MS).unref();
  const stdin = fstatSync(0);
  if (!stdin.isFIFO() && !stdin.isSocket()) return;
  process.stdin.on("end", tell).on("close", tell).on("error", tell).resume();
}
