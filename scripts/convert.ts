/** `npm run convert`: makes models that can be served, on this machine's CPU or on a stack's conversion VM. */
import { spawn } from "node:child_process";
import { dirname, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readStackOutputs } from "../targets/stack/read-outputs";
import { TargetError } from "../targets/target-error";
import { makeFolder } from "../tuning/results/durable";
import { ResultsError } from "../tuning/results/results-error";
import { gpuMismatch } from "./conversion/compute-capability";
import { runConversion } from "./conversion/follow";
import { gcloud } from "./conversion/gcloud";
import { readFailures, readManifests, renderManifests } from "./conversion/summary";
import { parseConvertCommandLine, type ConvertOptions } from "./convert-options";
import { exitCodes, type ExitCode } from "./exit-codes";
import { PythonError, pythonVariables, pythonWith } from "./python-environment";

const say = (text: string): void => void process.stdout.write(`${text}\n`);
/** A spot machine is rarely taken away more often within one conversion. */
const restarts = 3;

async function main(words: readonly string[]): Promise<ExitCode> {
  const commandLine = parseConvertCommandLine(words);
  if (commandLine.kind === "help") {
    process.stdout.write(commandLine.text);
    return exitCodes.ok;
  }
  if (commandLine.kind === "invalid") {
    for (const error of commandLine.errors) process.stderr.write(`convert: ${error}\n`);
    return exitCodes.badInput;
  }
  const { options } = commandLine;
  try {
    return options.kind === "local" ? await convertLocally(options) : await convertOnStack(options);
  } catch (error) {
    const isForeseen =
      error instanceof TargetError || error instanceof PythonError || error instanceof ResultsError;
    if (!isForeseen) throw error;
    process.stderr.write(`convert: ${error.message}\n`);
    return exitCodes.badInput;
  }
}

async function convertLocally(options: ConvertOptions & { kind: "local" }): Promise<ExitCode> {
  // Before minutes are spent on what cannot be written. The folder itself appears when it is complete.
  makeFolder(dirname(resolve(options.folder)));
  // Children get the signal too; this process waits for them, so that nothing half-made stays.
  process.on("SIGINT", () => {});
  const python = await pythonWith("local", say);
  const words = ["-m", "convert.local", "--output", options.folder];
  if (options.withResnet50) words.push("--with-resnet50");
  const child = spawn(python, words, { stdio: "inherit", env: pythonVariables() });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code === 0) return exitCodes.ok;
  return code === 2 ? exitCodes.badInput : code === null ? exitCodes.interrupted : exitCodes.unexpected;
}

async function convertOnStack({ stack, everyS }: ConvertOptions & { kind: "stack" }): Promise<ExitCode> {
  const outputs = await readStackOutputs(stack);
  if (outputs.conversionVm === null)
    throw new TargetError(
      `stack ${stack} has no conversion VM: run pulumi config set conversionVm true --stack ${stack}, then pulumi up`,
    );
  process.once("SIGINT", () => {
    process.stderr.write("convert: no longer following; the conversion goes on, and its VM stops itself\n");
    process.exit(exitCodes.interrupted);
  });
  const { name: vm, zone } = outputs.conversionVm;
  const cloud = gcloud({ project: outputs.project, zone, vm, bucket: outputs.modelRepository.bucket });
  const mismatch = gpuMismatch((await cloud.describe()).gpuType, outputs.triton.gpuType);
  if (mismatch !== null)
    throw new TargetError(`${mismatch}. Give both the same gpuType and run pulumi up --stack ${stack}`);
  const sleep = async (seconds: number): Promise<void> => void (await delay(seconds * 1000));
  const status = await runConversion(cloud, { everyS, restarts, say, sleep });
  const failures = await readFailures(cloud, status.failed);
  const names = [...new Set(outputs.repositoryVariants.map(({ artefact }) => artefact.name))];
  const made = names.filter((name) => !status.failed.includes(name));
  if (status.state === "failed" && failures.length === 0)
    throw new TargetError(
      `the conversion failed at "${status.step}": gcloud storage cat gs://${outputs.modelRepository.bucket}/${status.log}`,
    );
  say(`\n${renderManifests(await readManifests(cloud, made, outputs.triton.gpuType))}`);
  if (failures.length === 0) return exitCodes.ok;
  process.stderr.write(`\nNot made:\n${failures.map((line) => `  ${line}\n`).join("")}`);
  process.stderr.write(`Log: gcloud storage cat gs://${outputs.modelRepository.bucket}/${status.log}\n`);
  return exitCodes.partial;
}

main(process.argv.slice(2)).then(
  (code) => (process.exitCode = code),
  (error: unknown) => {
    console.error(error);
    process.exitCode = exitCodes.unexpected;
  },
);
