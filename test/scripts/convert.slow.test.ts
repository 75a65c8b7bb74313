/** convert on a stack, against stand-ins for pulumi and gcloud. */
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import type { StackOutputs } from "../../stack/outputs";
import { useFakeTools } from "./fake-tools";

const checkout = resolve(__dirname, "..", "..");
const tsx = join(checkout, "node_modules", "tsx", "dist", "cli.mjs");
const fake = useFakeTools();

const variants = [
  findVariant("original"),
  findVariant("tftrt_fp16"),
] as unknown as StackOutputs["repositoryVariants"];

function outputs(change: Partial<StackOutputs> = {}): StackOutputs {
  return {
    schemaVersion: 1,
    environment: "dev",
    project: "my-project",
    region: "us-central1",
    cluster: { name: "c", location: "l", server: "https://s", caCertificate: "", credentialsCommand: "none" },
    triton: {
      ...{
        namespace: "triton",
        deployment: "triton",
        service: "triton",
        headlessService: "h",
        podSelector: "a=b",
      },
      ports: { http: 8000, grpc: 8001, metrics: 8002 },
      ...{ image: "i:25.02", version: "25.02", modelControlMode: "explicit" as const, replicas: 1 },
      ...{ gpuType: "nvidia-tesla-t4", gpuMachineType: "n1-standard-8", gpuSpot: false },
    },
    variant: variants[0] as StackOutputs["variant"],
    repositoryVariants: variants,
    slo: { percentile: 95, boundMs: 100 },
    modelRepository: { bucket: "models", url: "gs://models/models" },
    loadGenerator: null,
    sweepSize: { region: "us-central1", clusters: 1, bucketGib: 1, pools: [] },
    sweepLock: { namespace: "load", leaseName: "sweep" },
    monitoring: null,
    conversionVm: { name: "converter", zone: "us-central1-a", startCommand: "s", logCommand: "l" },
    ...change,
  };
}

interface World {
  readonly status?: string;
  readonly gpu?: string;
  readonly outputs?: StackOutputs;
  /** Shell text run at the n-th look at the machine after the first start; the functions below change the world. */
  readonly steps?: readonly string[];
  readonly start?: string;
}

const helpers = `
machine() { echo "$1" > "$W/status"; }
console() { echo "Nov 30 00:00:00 vm google_metadata_script_runner[1]: startup-script: $1" >> "$W/serial"; }
object() { mkdir -p "$(dirname "$W/objects/$1")"; echo "$2" > "$W/objects/$1"; }
status() { object conversion/status.json "{\\"state\\":\\"$1\\",\\"step\\":\\"$2\\",\\"failed\\":[$3],\\"log\\":\\"conversion/logs/x.log\\",\\"at\\":\\"$(date +%s%N)\\"}"; }
manifest() { object "artefacts/$1/manifest.json" "{\\"artefact\\":\\"$1\\",\\"precision\\":\\"fp16\\",\\"gpu\\":{\\"name\\":\\"Tesla T4\\",\\"computeCapability\\":\\"\${2:-7.5}\\"},\\"accuracy\\":{\\"top1Agreement\\":0.995},\\"standAloneSpeed\\":[{\\"batchSize\\":64,\\"imagesPerS\\":990.4,\\"latencyP95Ms\\":64.6}]}"; }
`;

function world({
  status = "TERMINATED",
  gpu = "nvidia-tesla-t4",
  steps = [],
  start = "",
  ...more
}: World): void {
  writeFileSync(join(fake.folder, "outputs.json"), JSON.stringify(more.outputs ?? outputs()));
  fake.tool("pulumi", '[ "$*" = "stack output --json --stack dev" ] && cat "$W/outputs.json"');
  writeFileSync(join(fake.folder, "status"), status);
  writeFileSync(join(fake.folder, "serial"), "");
  steps.forEach((step, index) => writeFileSync(join(fake.folder, `step-${index + 1}`), step));
  fake.tool(
    "gcloud",
    `${helpers}
echo "$*" >> "$W/calls"
case "$*" in
  "compute instances describe converter --zone us-central1-a --project my-project"*)
    if [ -e "$W/started" ] || [ "$(cat "$W/status")" = RUNNING ]; then
      n=$(( $(cat "$W/n" 2> /dev/null || echo 0) + 1 )); echo "$n" > "$W/n"
      [ ! -e "$W/step-$n" ] || . "$W/step-$n"
    fi
    echo '{"status":"'"$(cat "$W/status")"'","guestAccelerators":[{"acceleratorType":"https://x/acceleratorTypes/${gpu}","acceleratorCount":1}]}' ;;
  "compute instances start converter "*)
    ${start || ":"}
    : > "$W/started"; : > "$W/serial"; machine RUNNING ;;
  "compute instances get-serial-port-output converter "*)
    from=$(sed 's/.*--start //' <<< "$*")
    tail -c "+$((from + 1))" "$W/serial"
    echo "Specify --start=$(stat -c %s "$W/serial") in the next get-serial-port-output invocation" >&2 ;;
  "storage cat gs://models/"*)
    path=\${3#gs://models/}
    cat "$W/objects/$path" 2> /dev/null || { echo "ERROR: (gcloud.storage.cat) The following URLs matched no objects or files" >&2; exit 1; } ;;
  *) echo "unexpected: $*" >&2; exit 64 ;;
esac`,
  );
}

function convert(
  words: string[] = [],
  path = `${join(fake.folder, "bin")}${delimiter}${process.env.PATH}`,
): Promise<{ code: number; out: string; err: string }> {
  const env = { ...process.env, PATH: path };
  return new Promise((done) => {
    const command = [
      tsx,
      join(checkout, "scripts", "convert.ts"),
      "--stack",
      "dev",
      "--every",
      "0.05",
      ...words,
    ];
    execFile(process.execPath, command, { cwd: fake.folder, env, timeout: 60_000 }, (error, out, err) => {
      done({ code: error === null ? 0 : ((error.code as number | undefined) ?? -1), out, err });
    });
  });
}

const calls = () => readFileSync(join(fake.folder, "calls"), "utf8").split("\n");
const starts = () => calls().filter((call) => call.includes("instances start")).length;
const everything =
  "manifest original; manifest tftrt_fp16_bs64; status succeeded 'all done'; machine TERMINATED";

describe("convert --stack", () => {
  it("starts the machine, shows its steps and console, waits for its end, and shows what was made", async () => {
    world({
      steps: [
        "status running 'wait for the GPU driver'; console 'driver 580'",
        "status running 'convert original'; console '3 TensorRT engines'",
        everything,
      ],
    });
    const { code, out, err } = await convert();
    expect(err).toBe("");
    expect(code).toBe(0);
    expect(out).toMatch(
      /starting the conversion VM[^]*wait for the GPU driver[^]*convert original[^]*all done/,
    );
    expect(out).toContain("  driver 580");
    expect(out).toContain("  3 TensorRT engines");
    expect(out.match(/driver 580/g)).toHaveLength(1);
    expect(out).toMatch(/tftrt_fp16_bs64 +fp16 +Tesla T4 +990\/s in batches of 64 +64\.6 ms +99\.5 %/);
    expect(starts()).toBe(1);
  });

  it("follows a machine that is running, and does not take the last run's status for this one's", async () => {
    // The first two looks come before it is followed.
    world({ status: "RUNNING", steps: ["", "", "", "status running 'convert original'", everything] });
    mkdirSync(join(fake.folder, "objects", "conversion"), { recursive: true });
    const stale = { state: "succeeded", step: "all done", failed: [], log: "l", at: "yesterday" };
    writeFileSync(join(fake.folder, "objects", "conversion", "status.json"), JSON.stringify(stale));
    const { code, out } = await convert();
    expect(code).toBe(0);
    expect(out).toContain("is running already");
    expect(starts()).toBe(0);
    expect(out.indexOf("convert original")).toBeLessThan(out.indexOf("all done"));
  });

  it("starts a machine again that was taken away, and gives up after three times", async () => {
    const gone = "status running 'convert original'; machine TERMINATED";
    world({ steps: ["", gone, everything] });
    const resumed = await convert();
    expect(resumed.code).toBe(0);
    expect(resumed.out).toContain('stopped at "convert original"; starting it again (1 of 3)');
    expect(starts()).toBe(2);
    rmSync(join(fake.folder, "n"));
    rmSync(join(fake.folder, "calls"));
    world({ steps: Array.from({ length: 12 }, () => gone) });
    const lost = await convert();
    expect(lost.code).toBe(2);
    expect(lost.err).toMatch(/stopped at "convert original" without an end, 4 times.*conversionMaxLifetimeH/);
    expect(starts()).toBe(4);
  });

  it("explains which artefacts failed, and shows the others", async () => {
    const failure = '{\\"message\\":\\"the disk is full\\",\\"fix\\":\\"Give it a larger one\\"}';
    const end = `manifest original; object conversion/failures/tftrt_fp16_bs64.json "${failure}"; status failed 'convert tftrt_fp16_bs64' '"tftrt_fp16_bs64"'`;
    world({ steps: ["", end] });
    const { code, out, err } = await convert();
    expect(code).toBe(4);
    expect(err).toContain("tftrt_fp16_bs64: the disk is full. Give it a larger one");
    expect(err).toContain("gcloud storage cat gs://models/conversion/logs/x.log");
    expect(out).toMatch(/^original /m);
    expect(out).not.toMatch(/^tftrt_fp16_bs64 /m);
  });

  it("says where the log is when it failed before the first artefact", async () => {
    world({ steps: ["", "status failed 'wait for the GPU driver'"] });
    const { code, err } = await convert();
    expect(code).toBe(2);
    expect(err).toMatch(
      /failed at "wait for the GPU driver": gcloud storage cat gs:\/\/models\/conversion\/logs\/x\.log/,
    );
  });

  it("refuses to start when another GPU will serve", async () => {
    world({ gpu: "nvidia-l4" });
    const { code, err } = await convert();
    expect(code).toBe(2);
    expect(err).toMatch(
      /nvidia-l4 \(compute capability 8\.9\) do not load on nvidia-tesla-t4 \(compute capability 7\.5\)/,
    );
    expect(starts()).toBe(0);
  });

  it("refuses artefacts that an earlier run made on another GPU", async () => {
    world({ steps: ["", "manifest original 8.9; manifest tftrt_fp16_bs64; status succeeded 'all done'"] });
    const { code, err } = await convert();
    expect(code).toBe(2);
    expect(err).toMatch(/artefact original was made on Tesla T4 \(compute capability 8\.9\)/);
  });

  it.each([
    [
      { outputs: outputs({ conversionVm: null }) },
      /has no conversion VM: run pulumi config set conversionVm true/,
    ],
    [
      { start: "echo 'ERROR: ZONE_RESOURCE_POOL_EXHAUSTED' >&2; exit 1" },
      /cannot be started: the zone has no GPU to spare/,
    ],
    [
      { start: "echo \"ERROR: Required 'compute.instances.start' permission for x\" >&2; exit 1" },
      /cannot be started: .*Your account needs that permission/,
    ],
  ] as [World, RegExp][])("explains %#", async (given, message) => {
    world(given);
    const { code, err } = await convert();
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });

  it("says that gcloud is missing", async () => {
    world({});
    rmSync(join(fake.folder, "bin", "gcloud"));
    fake.tool("pulumi", 'echo "$(< "$W/outputs.json")"');
    const { code, err } = await convert([], join(fake.folder, "bin"));
    expect(code).toBe(2);
    expect(err).toContain("--stack needs gcloud");
  });
});
