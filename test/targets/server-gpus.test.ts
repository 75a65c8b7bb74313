import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { gpusOf, parseSmi } from "../../targets/server-gpus";
import { stackGpus } from "../../targets/stack/stack-gpus";
import type { ConnectedStack } from "../../targets/stack/connect-stack";
import { parsePrometheusText } from "../../tuning/prometheus-text";

const samples = parsePrometheusText(
  [
    'nv_gpu_utilization{gpu_uuid="GPU-b"} 0.5',
    'nv_gpu_utilization{gpu_uuid="GPU-a"} 0.25',
    'nv_gpu_power_limit{gpu_uuid="GPU-a"} 70',
    'nv_gpu_power_limit{gpu_uuid="GPU-b"} 0',
  ].join("\n"),
);
const line = (uuid: string, driver = "535.104"): string =>
  `${uuid}, Tesla T4, ${driver}, 1590, 5001, 1590, [N/A]\n`;

let bin: string;
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), "smi-"));
  vi.stubEnv("PATH", bin);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(bin, { recursive: true, force: true });
  });
});

function smi(script: string): void {
  writeFileSync(join(bin, "nvidia-smi"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, "nvidia-smi"), 0o755);
}

describe("the GPUs of running servers", () => {
  it("have driver and clocks where nvidia-smi knows the devices that the metrics name", async () => {
    smi(`printf '%s' '${line("GPU-a")}${line("GPU-c")}${line("GPU-b")}'`);
    expect(await gpusOf(["127.0.0.1:8001"], samples)).toEqual({
      devices: [
        {
          uuid: "GPU-a",
          name: "Tesla T4",
          powerLimitW: 70,
          clocksMHz: { maxGraphics: 1590, maxMemory: 5001, setGraphics: 1590, setMemory: null },
        },
        {
          uuid: "GPU-b",
          name: "Tesla T4",
          powerLimitW: null,
          clocksMHz: { maxGraphics: 1590, maxMemory: 5001, setGraphics: 1590, setMemory: null },
        },
      ],
      driver: "535.104",
      machineImage: null,
      notKnown: null,
    });
  });

  it("behind a forwarded port are not this machine's", async () => {
    smi(`printf '%s' '${line("GPU-x")}'`);
    expect(await gpusOf(["127.0.0.1:8001"], samples)).toMatchObject({
      driver: null,
      notKnown: "Triton does not tell them, and its GPUs are not those of this machine",
    });
  });

  it("are known by name only, with the reason, where nothing tells more", async () => {
    const notKnown = async (addresses: readonly string[], seen = samples) =>
      (await gpusOf(addresses, seen)).notKnown;
    expect(await notKnown(["127.0.0.1:8001"])).toBe("nvidia-smi is not there");
    expect(await notKnown(["gpu.example:8001"])).toMatch(/the servers run on other machines$/);
    expect(await notKnown(["127.0.0.1:8001"], [])).toBe("the servers' metrics name no GPU");
    smi("echo 'Failed to initialize NVML' ; exit 9");
    expect(await notKnown(["127.0.0.1:8001"])).toBe("nvidia-smi failed (Failed to initialize NVML)");
  });

  it("of a stack come with the image of their machines, where one may look at those", async () => {
    const connected = (machineImage: (node: string) => Promise<string>) =>
      ({
        kube: { machineImage },
        servers: { metrics: { samples } },
        replicas: [{ pod: { node: "n1" } }, { pod: { node: "n2" } }],
      }) as unknown as ConnectedStack;
    const image = "Container-Optimized OS, kernel 6.1.90, kubelet v1.30.5";
    expect(await stackGpus(connected(async () => image))).toMatchObject({
      devices: [{ uuid: "GPU-a" }, { uuid: "GPU-b" }],
      driver: null,
      machineImage: image,
    });
    const refused = await stackGpus(connected(() => Promise.reject(new Error("forbidden"))));
    expect(refused).toMatchObject({ machineImage: null });
    expect(refused.notKnown).toMatch(/could not be looked at/);
  });
});

it("a column that a device does not have is no clock of zero", () => {
  expect(parseSmi("GPU-a, X, 1, [Not Supported], 10, [N/A], \n\n")).toEqual([
    {
      uuid: "GPU-a",
      name: "X",
      driver: "1",
      clocksMHz: { maxGraphics: null, maxMemory: 10, setGraphics: null, setMemory: null },
    },
  ]);
});
