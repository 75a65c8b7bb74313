// Preloaded into a worker process: says what it holds after a collection, whenever its parent asks. Needs --expose-gc and an IPC channel.
"use strict";
process.on("message", () => {
  // The second one frees what the first one's finalizers let go.
  global.gc();
  global.gc();
  process.send(process.memoryUsage());
});
