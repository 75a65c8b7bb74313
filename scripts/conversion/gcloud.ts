/** The few Google Cloud calls of a conversion, through the user's own `gcloud`. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { z } from "zod";
import { TargetError } from "../../targets/target-error";

const run = promisify(execFile);

/** A machine as the Compute API describes it. */
export interface Machine {
  /** PROVISIONING, STAGING, RUNNING, STOPPING, TERMINATED, ... */
  readonly status: string;
  /** Accelerator type, e.g. `nvidia-tesla-t4`; null without one. */
  readonly gpuType: string | null;
}

export interface SerialOutput {
  readonly text: string;
  /** Where the next call goes on. */
  readonly next: number;
}

/** What a conversion is followed through. */
export interface Cloud {
  describe(): Promise<Machine>;
  start(): Promise<void>;
  /** Console output from byte `from` on; empty when the machine gives none. */
  serial(from: number): Promise<SerialOutput>;
  /** An object of the model bucket; null if it is not there. */
  read(path: string): Promise<string | null>;
}

/** Where machine and bucket are. */
export interface CloudPlace {
  readonly project: string;
  readonly zone: string;
  readonly vm: string;
  readonly bucket: string;
}

const instanceSchema = z.looseObject({
  status: z.string(),
  guestAccelerators: z.array(z.looseObject({ acceleratorType: z.string() })).optional(),
});

interface Failure {
  readonly code?: unknown;
  readonly stderr?: string;
}

/** `gcloud` on PATH. Every call throws TargetError that says what to do. */
export function gcloud({ project, zone, vm, bucket }: CloudPlace): Cloud {
  const where = ["--zone", zone, "--project", project];
  return {
    async describe() {
      const { stdout } = await call([
        "compute",
        "instances",
        "describe",
        vm,
        ...where,
        "--format=json",
      ]).catch((error: Failure) => {
        throw explained(error, `the conversion VM ${vm} cannot be looked at`);
      });
      const machine = instanceSchema.parse(JSON.parse(stdout));
      return {
        status: machine.status,
        gpuType: machine.guestAccelerators?.[0]?.acceleratorType.split("/").at(-1) ?? null,
      };
    },
    async start() {
      await call(["compute", "instances", "start", vm, ...where, "--quiet"]).catch((error: Failure) => {
        throw explained(error, `the conversion VM ${vm} cannot be started`);
      });
    },
    async serial(from) {
      try {
        const words = [
          "compute",
          "instances",
          "get-serial-port-output",
          vm,
          ...where,
          "--start",
          String(from),
        ];
        const { stdout, stderr } = await call(words);
        const next = /--start=(\d+)/.exec(stderr)?.[1];
        return { text: stdout, next: next === undefined ? from + Buffer.byteLength(stdout) : Number(next) };
      } catch {
        // A machine that is just starting or stopping has no console; the status object says how it goes all the same.
        return { text: "", next: from };
      }
    },
    read: bucketReader({ project, bucket }),
  };
}

/** Reads objects of a bucket as the user; the text of one, or null if it is not there. Throws TargetError that says what to do. */
export function bucketReader({ project, bucket }: Pick<CloudPlace, "project" | "bucket">): Cloud["read"] {
  return async (path) => {
    try {
      return (await call(["storage", "cat", `gs://${bucket}/${path}`, "--project", project])).stdout;
    } catch (error) {
      const failure = error as Failure;
      if (/matched no objects|No URLs matched|404|not found/i.test(failure.stderr ?? "")) return null;
      throw explained(failure, `gs://${bucket}/${path} cannot be read`);
    }
  };
}

function call(words: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  return run("gcloud", [...words], { maxBuffer: 64 << 20 });
}

function explained(error: Failure, what: string): TargetError {
  if (error.code === "ENOENT")
    return new TargetError("--stack needs gcloud: install it (https://cloud.google.com/sdk/docs/install)");
  const said = (error.stderr ?? "").trim() || "gcloud said nothing";
  const last = said.split("\n").at(-1) ?? "";
  if (/ZONE_RESOURCE_POOL_EXHAUSTED|STOCKOUT/.test(said))
    return new TargetError(
      `${what}: the zone has no GPU to spare right now. Try again later, or set another zone first in the key zones ` +
        `and run pulumi up (${last})`,
    );
  if (/\b403\b|[Pp]ermission|does not have/.test(said))
    return new TargetError(
      `${what}: ${last}. Your account needs that permission: gcloud auth list says which it is`,
    );
  if (/\b401\b|gcloud auth login|credentials/i.test(said))
    return new TargetError(`${what}: ${last}. Log in with gcloud auth login`);
  if (/\b404\b|not found/i.test(said)) return new TargetError(`${what}: ${last}. Run pulumi up to make it`);
  return new TargetError(`${what}: ${last}`);
}
