/** Starts the conversion VM, follows it until it has ended, and starts it again when it was taken away. */
import { z } from "zod";
import { TargetError } from "../../targets/target-error";
import type { Cloud } from "./gcloud";

/** `conversion/status.json` as the startup script writes it (components/conversion-vm-script.ts). */
const statusSchema = z.looseObject({
  state: z.enum(["running", "succeeded", "failed"]),
  step: z.string(),
  /** Artefacts that could not be made. */
  failed: z.array(z.string()).default([]),
  /** Object with the log. */
  log: z.string(),
  at: z.string(),
});

export type ConversionStatus = z.infer<typeof statusSchema>;

export interface FollowOptions {
  readonly everyS: number;
  /** A spot machine that was taken away is started again so often. */
  readonly restarts: number;
  readonly say: (text: string) => void;
  readonly sleep: (seconds: number) => Promise<void>;
}

const statusObject = "conversion/status.json";
/** States in which a machine does nothing and can be started. */
const stopped = new Set(["TERMINATED", "STOPPED", "SUSPENDED"]);

/**
 * Runs one conversion to its end.
 * @throws TargetError when the machine cannot be started or stops without an end of the conversion
 */
export async function runConversion(cloud: Cloud, options: FollowOptions): Promise<ConversionStatus> {
  const before = await readStatus(cloud);
  await startWhenStopped(cloud, options);
  const console = new ConsoleLines();
  let step = "boot";
  let restarts = 0;
  for (;;) {
    // First the machine, then what it wrote: a machine that has stopped has written its last status.
    const machine = await cloud.describe();
    for (const line of console.take(await cloud.serial(console.next))) options.say(`  ${line}`);
    const status = await readStatus(cloud);
    // What stood there before the start says nothing about this run.
    const ours = status !== null && status.at !== before?.at ? status : null;
    if (ours !== null && ours.step !== step) options.say((step = ours.step));
    if (ours !== null && ours.state !== "running") return ours;
    if (stopped.has(machine.status)) {
      if (restarts === options.restarts)
        throw new TargetError(
          `the conversion VM stopped at "${step}" without an end, ${restarts + 1} times: taken away by Google ` +
            `(conversionSpot), or over conversionMaxLifetimeH. Run the same command again to go on; what is finished ` +
            `is not made again`,
        );
      restarts += 1;
      options.say(
        `the conversion VM stopped at "${step}"; starting it again (${restarts} of ${options.restarts})`,
      );
      await cloud.start();
      console.restart();
    }
    await options.sleep(options.everyS);
  }
}

async function startWhenStopped(cloud: Cloud, options: FollowOptions): Promise<void> {
  let { status } = await cloud.describe();
  while (status === "STOPPING" || status === "SUSPENDING") {
    options.say("the conversion VM is just stopping; waiting for that");
    await options.sleep(options.everyS);
    ({ status } = await cloud.describe());
  }
  if (!stopped.has(status)) {
    options.say("the conversion VM is running already; following it");
    return;
  }
  options.say("starting the conversion VM");
  await cloud.start();
}

async function readStatus(cloud: Cloud): Promise<ConversionStatus | null> {
  const text = await cloud.read(statusObject);
  if (text === null) return null;
  try {
    return statusSchema.parse(JSON.parse(text));
  } catch (error) {
    throw new TargetError(
      `${statusObject} in the model bucket is not what the conversion VM writes: run pulumi up with this version, ` +
        `then try again (${error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error)})`,
    );
  }
}

/** Whole lines of the startup script out of pieces of console output. */
class ConsoleLines {
  next = 0;
  private rest = "";

  take({ text, next }: { readonly text: string; readonly next: number }): string[] {
    this.next = next;
    const lines = (this.rest + text).split(/\r?\n/);
    this.rest = lines.pop() ?? "";
    return lines.flatMap((line) => /startup-script: (.*)$/.exec(line)?.[1]?.trimEnd() ?? []).filter(Boolean);
  }

  /** A started machine has a console of its own. */
  restart(): void {
    this.next = 0;
    this.rest = "";
  }
}
