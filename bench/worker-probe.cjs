// Preloaded into a worker process: says what its parent asks for. Needs --expose-gc and an IPC channel.
"use strict";

const EVERY_MS = 5;
// Of the thread that sends, where Node can tell it (23.9); else of all threads, which is more.
const cpuUsage = (process.threadCpuUsage ?? process.cpuUsage).bind(process);
const cpuMs = () => {
  const { user, system } = cpuUsage();
  return (user + system) / 1000;
};

// A timer that is due fires in the next turn of the event loop. CPU time that was used between two firings, above the pause between
// them, was used by a turn that kept the timer waiting, wherever else the process waited for a core.
let ownDelaysMs = [];
let lastMs = cpuMs();
setInterval(() => {
  const nowMs = cpuMs();
  ownDelaysMs.push(Math.max(0, nowMs - lastMs - EVERY_MS));
  lastMs = nowMs;
}, EVERY_MS).unref();

const answers = {
  /** What is held after a collection; the second one frees what the first one's finalizers let go. */
  memory: () => {
    global.gc();
    global.gc();
    return { ...process.memoryUsage(), peakRss: 1024 * process.resourceUsage().maxRSS };
  },
  /** Percentile 99 since the last question, milliseconds. */
  ownDelayP99Ms: () => {
    const sorted = ownDelaysMs.sort((one, other) => one - other);
    ownDelaysMs = [];
    return sorted[Math.max(0, Math.ceil(0.99 * sorted.length) - 1)] ?? 0;
  },
};
process.on("message", (question) => process.send(answers[question]()));
