import { fstatSync } from "node:fs";

const POLL_MS = 250;

/**
 * Calls `onGone` once when the process that started this one is gone: its end of a stdin pipe closes, or this process gets
 * another parent. (The pipe also works through a launcher that stands between the two.)
 */
export function watchParent(onGone: () => void): void {
  const parent = process.ppid;
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
