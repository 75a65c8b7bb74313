/**
 * Says why a stack does not get ready. Alone it looks at the stack as it is now; before a command it runs that command and
 * watches: `npm run explain -- --stack dev -- pulumi up --yes`.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { promisify } from "node:util";
import { Command, InvalidArgumentError } from "commander";
import { noEvidence, type Evidence } from "../diagnose-up/evidence";
import { explain } from "../diagnose-up/explain";
import { render, type Explanation } from "../diagnose-up/explanation";
import { readCluster } from "../diagnose-up/read-cluster";
import { readState } from "../diagnose-up/read-state";
import { exitCodes } from "./exit-codes";

const pulumi = promisify(execFile);

interface Options {
  stack?: string;
  everyS: number;
  stopAfterS: number;
}

/** Collects what there is to know; a cluster that cannot be reached yet is no error. */
async function collect(
  options: Options,
  pulumiOutput: string,
): Promise<{ evidence: Evidence; problem?: string }> {
  const which = options.stack ? ["--stack", options.stack] : [];
  try {
    const { stdout } = await pulumi("pulumi", ["stack", "export", "--show-secrets", ...which], {
      maxBuffer: 256 << 20,
    });
    const state = readState(JSON.parse(stdout));
    const evidence = { ...noEvidence, names: state.names, pulumiOutput };
    if (!state.kubeconfig) return { evidence };
    return { evidence: { ...evidence, ...(await readCluster(state.kubeconfig, state.namespaces)) } };
  } catch (error) {
    return { evidence: { ...noEvidence, pulumiOutput }, problem: inOneLine(error) };
  }
}

/** Why Pulumi's state could not be read; its own error is worth more than that it failed. */
function inOneLine(error: unknown): string {
  const { code, stderr, message } = error as { code?: unknown; stderr?: string; message?: string };
  if (code === "ENOENT")
    return "the pulumi command is needed: install it (https://www.pulumi.com/docs/install)";
  const lines = (stderr || message || String(error)).trim().split("\n");
  return lines.find((line) => /^error:/i.test(line)) ?? lines[0]!;
}

function printed(explanations: readonly Explanation[]): string {
  return explanations.map(render).join("\n\n");
}

/** Runs the command, prints each explanation when it first appears, and stops the command when it cannot succeed. */
async function watch(options: Options, command: string[]): Promise<number> {
  const [file = "", ...args] = command;
  const child: ChildProcess = spawn(file, args, { stdio: ["inherit", "pipe", "pipe"] });
  let output = "";
  const keep = (sink: NodeJS.WriteStream) => (chunk: Buffer) => {
    sink.write(chunk);
    output = (output + chunk.toString()).slice(-1_000_000);
  };
  child.stdout?.on("data", keep(process.stdout));
  child.stderr?.on("data", keep(process.stderr));
  let ended = false;
  const exit = new Promise<number>((resolve, reject) => {
    child.on("error", (error) => reject(new Error(`Cannot run ${file}: ${error.message}`)));
    child.on("close", (code) => {
      ended = true;
      resolve(code ?? 1);
    });
  });
  const told = new Map<string, number>();
  let stopped = false;
  const look = async (): Promise<void> => {
    const { evidence } = await collect(options, output);
    for (const explanation of explain(evidence)) {
      const first = told.get(explanation.gate);
      if (first === undefined) console.error(`\n${render(explanation)}\n`);
      told.set(explanation.gate, first ?? Date.now());
      const stuckS = (Date.now() - (first ?? Date.now())) / 1000;
      if (explanation.stuck && options.stopAfterS > 0 && stuckS >= options.stopAfterS && !stopped && !ended) {
        stopped = true;
        console.error(`Stopping: waiting cannot open the gate "${explanation.gate}".`);
        child.kill("SIGINT");
      }
    }
  };
  const poll = async (): Promise<void> => {
    while (!ended) {
      await Promise.race([exit, new Promise((resolve) => setTimeout(resolve, options.everyS * 1000))]);
      if (!ended) await look();
    }
  };
  const [code] = await Promise.all([exit, poll()]);
  if (code !== 0) await look();
  return code;
}

const seconds = (value: string): number => {
  const number = Number(value);
  if (!Number.isFinite(number) || number < 0)
    throw new InvalidArgumentError("a number of seconds, 0 or more");
  return number;
};

async function main(): Promise<number> {
  const program = new Command("explain")
    .description(
      "Says which gate holds a stack: quota, machines, driver, image, access to the bucket, model.\n" +
        "Exit code 0: none; 1: one that waiting does not open; 2: the stack cannot be looked at. With a command: the command's own.",
    )
    .argument("[command...]", "a command to run and watch, after --, for instance: pulumi up --yes")
    .option("--stack <name>", "Pulumi stack; default: the selected one")
    .option("--every-s <seconds>", "how often to look while the command runs", seconds, 10)
    .option(
      "--stop-after-s <seconds>",
      "interrupt the command when a gate has been shut for so long; 0: never",
      seconds,
      0,
    )
    .parse();
  const options = program.opts<Options>();
  if (program.args.length > 0) return watch(options, program.args);
  const { evidence, problem } = await collect(options, "");
  if (problem !== undefined) {
    console.error(`explain: the stack cannot be looked at: ${problem}`);
    return exitCodes.badInput;
  }
  const explanations = explain(evidence);
  console.log(
    explanations.length > 0 ? printed(explanations) : "Nothing holds the stack that this command knows of.",
  );
  return explanations.some((one) => one.stuck) ? 1 : 0;
}

main().then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
