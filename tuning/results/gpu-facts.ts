/** What is known of the GPUs behind a measurement, for the manifest: driver and clocks may explain a number that has changed. */
import { z } from "zod";

const clock = z.number().positive().nullable();

export const gpuFactsSchema = z.object({
  devices: z.array(
    z.object({
      /** As driver and metrics name the device. */
      uuid: z.string(),
      /** Null: not known. */
      name: z.string().nullable(),
      powerLimitW: z.number().positive().nullable(),
      /** What the device's clocks may be and what they are set to, MHz; null: not known. */
      clocksMHz: z
        .object({ maxGraphics: clock, maxMemory: clock, setGraphics: clock, setMemory: clock })
        .nullable(),
    }),
  ),
  /** Version of the graphics driver; null: not known. */
  driver: z.string().nullable(),
  /** Image and kernel of the machines, which the driver comes with where a cloud installs it; null: not known. */
  machineImage: z.string().nullable(),
  /** Why driver or clocks are not known, in a few words; null when they are. */
  notKnown: z.string().nullable(),
});

/** The servers' GPUs as far as somebody tells. */
export type GpuFacts = z.infer<typeof gpuFactsSchema>;

type Device = GpuFacts["devices"][number];

/** The devices in words; devices of the same kind once. */
export function devicesText({ devices }: GpuFacts): string {
  if (devices.length === 0) return "none that is known";
  const kinds = new Map<string, number>();
  for (const { name, uuid } of devices) kinds.set(name ?? uuid, (kinds.get(name ?? uuid) ?? 0) + 1);
  return [...kinds].map(([kind, count]) => (count === 1 ? kind : `${count} x ${kind}`)).join(", ");
}

/** Clocks in words; null: of no device known. */
export function clocksText({ devices }: GpuFacts): string | null {
  return together(devices, ({ clocksMHz }) => {
    if (clocksMHz === null) return null;
    const { setGraphics, maxGraphics, setMemory, maxMemory } = clocksMHz;
    const graphics = ofMax(setGraphics, maxGraphics);
    const memory = ofMax(setMemory, maxMemory);
    return graphics === null && memory === null ? null : `SM ${graphics ?? "?"}, memory ${memory ?? "?"} MHz`;
  });
}

/** Power limits in words; null: of no device known. */
export function powerLimitText({ devices }: GpuFacts): string | null {
  return together(devices, ({ powerLimitW }) => (powerLimitW === null ? null : `${powerLimitW} W`));
}

function ofMax(set: number | null, max: number | null): string | null {
  if (max === null) return set === null ? null : String(set);
  return set === null || set === max ? `up to ${max}` : `set to ${set} of ${max}`;
}

function together(devices: readonly Device[], textOf: (device: Device) => string | null): string | null {
  const texts = [...new Set(devices.map(textOf))].filter((text) => text !== null);
  return texts.length === 0 ? null : texts.join(" / ");
}
