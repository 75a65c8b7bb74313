/** Which signals are one interruption. Signals are emitted on the process object, as Node does. */
import { expect, it, onTestFinished } from "vitest";
import { onInterruption, SAME_INTERRUPTION_MS } from "../../scripts/interrupts";

function listen() {
  const seen: [string, boolean][] = [];
  const clock = { nowMs: 5 };
  const stop = onInterruption(
    (signal, isAgain) => seen.push([signal, isAgain]),
    () => clock.nowMs,
  );
  onTestFinished(stop);
  return { seen, clock, stop };
}

it("takes what npm passes on for the same Ctrl-C, and a later one for another", () => {
  const { seen, clock } = listen();
  process.emit("SIGINT", "SIGINT");
  process.emit("SIGINT", "SIGINT");
  clock.nowMs += SAME_INTERRUPTION_MS - 1;
  process.emit("SIGTERM", "SIGTERM");
  expect(seen).toEqual([["SIGINT", false]]);
  clock.nowMs += 1;
  process.emit("SIGTERM", "SIGTERM");
  process.emit("SIGINT", "SIGINT");
  expect(seen.slice(1)).toEqual([
    ["SIGTERM", true],
    ["SIGINT", true],
  ]);
});

it("leaves signals to others when it has stopped", () => {
  const before = process.listenerCount("SIGINT") + process.listenerCount("SIGTERM");
  const { stop } = listen();
  stop();
  expect(process.listenerCount("SIGINT") + process.listenerCount("SIGTERM")).toBe(before);
});
