/** Which options of the tune command go with which target. Pure. */
import type { Complaints, Raw } from "./option-values";

/** Those that depend on the target, as commander delivers them. */
export interface RawTargetOptions {
  variants?: Raw;
  variantsFile?: Raw;
  triton?: Raw;
  metrics?: Raw;
  maxRate?: Raw;
  stack?: Raw;
  yesProd?: true;
  replicas?: Raw;
  workers?: Raw;
  busyWaitMs?: Raw;
  images?: Raw;
  timeDilation?: Raw;
  conversionManifest?: Raw;
}

/** Options that go with a target, and those that exclude each other. */
export function complainAboutTarget(raw: RawTargetOptions, complaints: Complaints): void {
  const complain = (sentence: string): void => void complaints.list.push(sentence);
  if (raw.variants !== undefined && raw.variantsFile !== undefined)
    complain("--variants and --variants-file exclude each other: put all variants into the file");
  if (raw.triton !== undefined && raw.stack !== undefined)
    complain("--triton and --stack exclude each other: the stack's servers are found by its outputs");
  const isRunning = raw.triton !== undefined || raw.stack !== undefined;
  if (isRunning && raw.timeDilation !== undefined)
    complain("--time-dilation is for the simulated T4: a real server runs in real time; leave it out");
  if (raw.stack !== undefined) {
    if (raw.workers !== undefined)
      complain(
        "--workers is for workers on this machine: pulumi config set loadWorkers N changes the stack's",
      );
    if (raw.busyWaitMs !== undefined)
      complain(
        "--busy-wait-ms is for workers on this machine: pulumi config set loadBusyWaitMs MS changes the stack's",
      );
    if (raw.images !== undefined)
      complain(
        "--images is for workers on this machine: the stack's send the images of their container image",
      );
    if (raw.variantsFile !== undefined)
      complain("--variants-file is not for a stack: add variants to repositoryVariants in its configuration");
    if (raw.conversionManifest !== undefined)
      complain("--conversion-manifest is not for a stack: its manifests are read from its bucket");
  } else if (raw.yesProd !== undefined) {
    complain("--yes-prod goes with --stack NAME");
  }
  for (const [option, given, fits, what] of [
    ["--metrics", raw.metrics, raw.triton, "--triton HOST:PORT"],
    ["--replicas", raw.replicas, raw.triton ?? raw.stack, "--triton HOST:PORT,HOST:PORT or --stack NAME"],
    ["--conversion-manifest", raw.conversionManifest, raw.triton ?? raw.stack, "--triton HOST:PORT"],
    ["--max-rate", raw.maxRate, raw.triton ?? raw.stack, "--triton HOST:PORT or --stack NAME"],
  ] as const) {
    if (given !== undefined && fits === undefined)
      complain(`${option} is for a running server: name one with ${what}`);
  }
}
