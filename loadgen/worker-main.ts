/** Process of one load worker: `worker-main --controller HOST:PORT --name NAME`, token in LOADGEN_TOKEN. */
import { hostname } from "node:os";
import { Command, InvalidArgumentError } from "commander";
import { splitHostPort } from "./host-port";
import { LoadWorker } from "./worker";

interface Arguments {
  readonly controller: string;
  readonly name: string;
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

const { controller, name, exitWithStdin } = new Command("worker")
  .description(
    "Sends load for a controller. The shared token comes in the environment variable LOADGEN_TOKEN.",
  )
  .requiredOption("--controller <host:port>", "gRPC address of the controller", parseAddress)
  .option("--name <name>", "name in the controller's list, unique", `${hostname()}-${process.pid}`)
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
  log: (line) => process.stderr.write(`${name}: ${line}\n`),
});

function end(): void {
  void worker.stop().then(() => process.exit(0));
}

process.on("SIGTERM", end);
if (exitWithStdin) {
  process.stdin.on("end", end).on("error", end).resume();
  // Ctrl-C reaches the whole process group; the parent decides what becomes of its workers.
  process.on("SIGINT", () => undefined);
} else {
  process.on("SIGINT", end);
}
