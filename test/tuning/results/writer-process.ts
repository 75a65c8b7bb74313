/**
 * Another process that writes into a results folder. Arguments: folder, mode.
 * `hold`: appends two points, says "ready" and stays. `fill`: appends until it fails and prints the error. `unprivileged`: opens
 * the folder as a user without rights on it and prints the error.
 */
import { PointLog } from "../../../tuning/results/point-log";
import { record } from "./records";

const [folder, mode] = process.argv.slice(2);
if (folder === undefined) throw new Error("folder missing");

/** Root may write everywhere, so give up being root after all code is loaded. */
if (mode === "unprivileged" && process.getuid?.() === 0) process.setuid?.(65534);

try {
  const log = PointLog.open(folder);
  if (mode === "hold") {
    log.append(record("first"));
    log.append(record("second"));
    console.log("ready");
    setInterval(() => {}, 1000);
  } else {
    for (let i = 0; i < 1000; i++) log.append(record(`point ${i}`));
  }
} catch (error) {
  console.log(String(error));
}
