/**
 * What can be found out about the GPUs of servers that run already. Triton's metrics name the devices and their power limit, but neither
 * driver nor clocks: those are read with nvidia-smi where a server runs on this machine, and not guessed elsewhere.
 */
import { execFile } from "node:child_process";
import { tritonMetrics } from "../kserve/triton-metrics";
import type { MetricSample } from "../tuning/prometheus-text";
import type { GpuFacts } from "../tuning/results/gpu-facts";
import { addressesHere } from "./same-machine";

/** A GPU as nvidia-smi describes it. */
export interface SmiDevice {
  readonly uuid: string;
  readonly name: string;
  readonly driver: string;
  readonly clocksMHz: NonNullable<GpuFacts["devices"][number]["clocksMHz"]>;
}

const program = "nvidia-smi";
const SMI_TIMEOUT_MS = 10_000;
/** Columns of the query, in the order of `parseSmi`. */
const columns = [
  "uuid",
  "name",
  "driver_version",
  "clocks.max.graphics",
  "clocks.max.memory",
  "clocks.applications.graphics",
  "clocks.applications.memory",
];

/** Devices that the servers' metrics name; nothing is known of driver and clocks. */
export function gpusInMetrics(samples: readonly MetricSample[], notKnown: string): GpuFacts {
  const uuids = new Set(
    samples
      .filter(({ name }) => name === tritonMetrics.gpuUtilization)
      .flatMap(({ labels }) => labels["gpu_uuid"] ?? []),
  );
  const powerLimitOf = (uuid: string): number | null => {
    const limits = samples.filter(
      ({ name, labels }) => name === tritonMetrics.gpuPowerLimitW && labels["gpu_uuid"] === uuid,
    );
    // Devices without a limit report zero.
    return limits[0]?.value || null;
  };
  return {
    devices: [...uuids]
      .sort()
      .map((uuid) => ({ uuid, name: null, powerLimitW: powerLimitOf(uuid), clocksMHz: null })),
    driver: null,
    machineImage: null,
    notKnown,
  };
}

/** The GPUs of servers that are known by their addresses. */
export async function gpusOf(
  addresses: readonly string[],
  samples: readonly MetricSample[],
  readSmi: () => Promise<readonly SmiDevice[] | string> = readDevices,
): Promise<GpuFacts> {
  const found = gpusInMetrics(samples, "");
  if (found.devices.length === 0) return { ...found, notKnown: "the servers' metrics name no GPU" };
  if (addressesHere(addresses).length < addresses.length)
    return { ...found, notKnown: "Triton does not tell them, and the servers run on other machines" };
  const own = await readSmi();
  if (typeof own === "string") return { ...found, notKnown: own };
  return withDevices(found, own);
}

/** A forwarded port looks like a server of this machine: only the devices' own names tell whether it is one. */
function withDevices(found: GpuFacts, own: readonly SmiDevice[]): GpuFacts {
  const byUuid = new Map(own.map((device) => [device.uuid, device]));
  const drivers = new Set(found.devices.map(({ uuid }) => byUuid.get(uuid)?.driver));
  if (drivers.has(undefined))
    return { ...found, notKnown: "Triton does not tell them, and its GPUs are not those of this machine" };
  return {
    ...found,
    devices: found.devices.map((device) => {
      const { name, clocksMHz } = byUuid.get(device.uuid)!;
      return { ...device, name, clocksMHz };
    }),
    driver: [...drivers].join(" / "),
    notKnown: null,
  };
}

/** This machine's devices, or why there are none. */
function readDevices(): Promise<readonly SmiDevice[] | string> {
  const words = [`--query-gpu=${columns.join(",")}`, "--format=csv,noheader,nounits"];
  return new Promise((resolve) => {
    execFile(program, words, { timeout: SMI_TIMEOUT_MS }, (error, stdout, stderr) => {
      if (error === null) return resolve(parseSmi(stdout));
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      const reason = isMissing ? "is not there" : `failed (${firstLine(stdout || stderr || error.message)})`;
      resolve(`${program} ${reason}`);
    });
  });
}

/** Reads what nvidia-smi prints for `columns`, a line a device; a column that a device does not have is no number there. */
export function parseSmi(text: string): SmiDevice[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => {
      const [uuid = "", name = "", driver = "", ...clocks] = line.split(",").map((cell) => cell.trim());
      const [maxGraphics, maxMemory, setGraphics, setMemory] = clocks.map((cell) => Number(cell) || null);
      return {
        uuid,
        name,
        driver,
        clocksMHz: {
          maxGraphics: maxGraphics ?? null,
          maxMemory: maxMemory ?? null,
          setGraphics: setGraphics ?? null,
          setMemory: setMemory ?? null,
        },
      };
    });
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0]!.slice(0, 200);
}
