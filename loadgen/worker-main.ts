/**
 * Process of one load worker: `worker-main --controller HOST:PORT --name NAME`, token in LOADGEN_TOKEN. SIGTERM or Ctrl-C: what it has
 * measured is reported before it ends; a second one ends it at once.
 */
import { hostname } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { DEFAULT_GRACE_S, parseGraceS } from "./grace";
import { splitHostPort } from "./host-port";
import { MAX_BUSY_WAIT_MS } from "./wake-timer";
import { LoadWorker } from "./worker";

interface Arguments {
  readonly controller: string;
  readonly name: string;
  readonly graceS: number;
  readonly busyWaitMs: number;
  readonly exitWithStdin: boolean;
}

function parseAddress(text: string): string {
  try {
    splitHostPort(text);
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
  return text;
}

function parseBusyWaitMs(text: string): number {
  const ms = text.trim() === "" ? NaN : Number(text);
  if (!(ms >= 0 && ms <= MAX_BUSY_WAIT_MS))
    throw new InvalidArgumentError(`give milliseconds from 0 to ${MAX_BUSY_WAIT_MS}.`);
  return ms;
}

const { controller, name, graceS, busyWaitMs, exitWithStdin } = new Command("worker")
  .description(
    "Sends load for a controller. The shared token comes in the environment variable LOADGEN_TOKEN.",
  )
  .requiredOption("--controller <host:port>", "gRPC address of the controller", parseAddress)
  .option("--name <name>", "name in the controller's list, unique", `${hostname()}-${process.pid}`)
  .option(
    "--grace-s <s>",
    "longest wait for the answers of a running measurement after SIGTERM, seconds",
    parseGraceS,
    DEFAULT_GRACE_S,
  )
  .option(
    "--busy-wait-ms <ms>",
    "wait awake this long for each planned send: less lateness for a worker that has a core to itself",
    parseBusyWaitMs,
    0,
  )
  .option(
    "--exit-with-stdin",
    "end when standard input ends: a parent process that dies takes its workers along",
    false,
  )
  .parse()
  .opts<Arguments>();

const token = process.env["LOADGEN_TOKEN"] ?? "";
if (token === "") {
  process.stderr.write("LOADGEN_TOKEN is not set: give the worker the controller's token\n");
  process.exit(2);
}

const worker = new LoadWorker({
  controller,
  name,
  token,
  busyWaitMs,
  log: (line) => process.stderr.write(`${name}: ${line}\n`),
});

function endNow(): void {
  void worker.stop().then(() => process.exit(0));
}

let isLeaving = false;
function leave(signal: string): void {
  if (isLeaving) return endNow();
  isLeaving = true;
  void worker.leave(signal, graceS * 1000).then(() => process.exit(0));
}

process.on("SIGTERM", leave);
if (exitWithStdin) {
  process.stdin.on("end", endNow).on("error", endNow).resume();
  // Ctrl-C reaches the whole process group; the parent decides what becomes of its workers.
  process.on("SIGINT", () => undefined);
} else {
  process.on("SIGINT", leave);
}
