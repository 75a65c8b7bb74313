import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { findVariant } from "../../model-repo/catalogue";
import { imagesFolder } from "../../model-repo/repository";
import type { Variant } from "../../model-repo/variant";
import { writeRepository } from "../../model-repo/write-repository";
import type { StackOutputs } from "../../stack/outputs";
import { checkStack } from "../../targets/stack/check-stack";
import { Kube } from "../../targets/stack/kube";
import { connectStack, type ConnectedStack } from "../../targets/stack/connect-stack";
import { openStackTarget } from "../../targets/stack/stack-target";
import { stackWireAlone } from "../../targets/stack/stack-wire";
import { KserveClient } from "../../kserve/client";
import { LiveRunner } from "../../tuning/live-runner";
import { noOpModelName } from "../../tuning/no-op-model";
import { renderChecks } from "../../tuning/preflight/check";
import { askReferenceAnswers } from "../../tuning/reference-answers";
import type { TrialSpec } from "../../tuning/trial";
import { StackInCluster } from "./harness/stack";
import { underWay } from "./harness/under-way";

const checkout = resolve(__dirname, "..", "..");
const own: Variant = findVariant("tftrt_int8_bs8_count4");
/** Settings that the stack does not have: an override of its own variant's model. */
const other: Variant = {
  ...own,
  artefact: { ...own.artefact, name: own.name },
  name: "other",
  instanceCount: 2,
};

let repository: string;
let stack: StackInCluster;
const path = process.env["PATH"];

beforeAll(async () => {
  repository = mkdtempSync(join(tmpdir(), "stack-repository-"));
  await writeRepository([own], repository);
  stack = await StackInCluster.start(repository, own);
  process.env["PATH"] = stack.path();
}, 120_000);

afterAll(async () => {
  process.env["PATH"] = path;
  await stack?.stop();
  rmSync(repository, { recursive: true, force: true });
});

async function connect(outputs: StackOutputs = stack.outputs()): Promise<ConnectedStack> {
  const kube = await Kube.connect(outputs.cluster);
  // Pods' addresses lead nowhere here; the worker reaches the server as this process does.
  const connected = await connectStack({
    stack: "dev",
    outputs,
    kube,
    workerAddress: () => stack.triton.grpcAddress,
  });
  onTestFinished(() => connected.close());
  return connected;
}

async function open() {
  const connected = await connect();
  const target = await openStackTarget({ connected, maxRatePerS: 300 });
  onTestFinished(() => target.close());
  const runner = new LiveRunner({
    target,
    imageFolder: imagesFolder,
    transport: "lean",
    referenceAnswers: (variant, model, address) => askReferenceAnswers(variant, model, address, imagesFolder),
  });
  return { target, runner, connected };
}

function trial(change: Partial<TrialSpec> = {}): TrialSpec {
  return {
    variant: other,
    shape: { kind: "poisson", ratePerS: 20 },
    slo: { quantile: 0.95, boundMs: 5000 },
    seed: 1,
    warmupS: 0.5,
    measureS: 3,
    purpose: "confirm",
    ...change,
  };
}

describe("a stack in a real cluster", () => {
  it("is looked at through port-forwards: pods, workers, servers, metrics", async () => {
    const connected = await connect();
    const text = renderChecks(await checkStack(connected));
    expect(text).toMatch(/ok +pods of Triton +1 ready: triton-a on gpu-1/);
    expect(text).toMatch(/ok +load workers +1 connected, on other machines than Triton/);
    expect(text).toMatch(/clock +the load controller's is \d+ ms (ahead|behind) \(± \d+ ms\)/);
    expect(connected.servers.metadata.version).toBe("2.51.0");
    expect(connected.servers.metrics.missing).toBeNull();
  });

  it("runs trials with its own load generator, and serves its own variant again at the end", async () => {
    const { target, runner, connected } = await open();
    const progress: number[] = [];
    const { load, server } = await runner.run(trial(), ({ ratePerS }) => progress.push(ratePerS));
    expect(load.invalidReasons).toEqual([]);
    expect(load.total.planned).toBeGreaterThan(30);
    expect(load.total.ok).toBe(load.total.planned);
    expect(load.perAddress).toEqual({ [connected.servers.addresses[0]!]: load.total.ok });
    expect(server.meanBatch).toBeGreaterThanOrEqual(1);
    expect(progress.length).toBeGreaterThan(1);
    const client = new KserveClient(stack.triton.grpcAddress);
    onTestFinished(() => client.close());
    expect((await client.modelConfig(own.name)).instance_group[0]!.count).toBe(2);
    await target.control.restore();
    expect((await client.modelConfig(own.name)).instance_group[0]!.count).toBe(4);
    expect((await client.repositoryIndex({ readyOnly: true })).map(({ name }) => name)).toEqual([own.name]);
    await expect(runner.run(trial({ shape: { kind: "poisson", ratePerS: 400 } }))).rejects.toThrow(
      /the limit is 300: raise --max-rate/,
    );
  });

  it("says what the way to the server passes, by a model that does nothing and is gone afterwards", async () => {
    const connected = await connect();
    const { summary } = await stackWireAlone(connected, own.artefact, 60);
    // A busy machine may send late; then it says so.
    expect(summary).toMatch(
      /^the way from the load workers passes (all of )?\d+ requests\/s of 602 kB|is not known: client-bound/,
    );
    const client = new KserveClient(stack.triton.grpcAddress);
    onTestFinished(() => client.close());
    expect(await client.modelReady(noOpModelName)).toBe(false);
    expect((await client.repositoryIndex({ readyOnly: true })).map(({ name }) => name)).toEqual([own.name]);
  });

  it("is measured by one sweep at a time", async () => {
    const { target } = await open();
    const second = await connect();
    await expect(openStackTarget({ connected: second, maxRatePerS: 300 })).rejects.toThrow(
      /another sweep measures this stack: .+@.+, last heard of at 20/,
    );
    await target.close();
    const third = await openStackTarget({ connected: await connect(), maxRatePerS: 300 });
    await third.close();
  });

  it("does not use a trial whose pod was replaced, and goes on with the new pod", async () => {
    const { target, runner, connected } = await open();
    const { running } = await underWay(runner, trial());
    await stack.replaceTritonPod("triton-b");
    const { load } = await running;
    expect(load.valid).toBe(false);
    expect(load.invalidReasons.join()).toMatch(/triton-a was replaced or restarted during the trial/);
    runner.reset();
    await target.recover(other, { measured: true, reason: load.invalidReasons.join() });
    expect(connected.replicas.map(({ pod }) => pod.name)).toEqual(["triton-b"]);
    expect((await runner.run(trial())).load.invalidReasons).toEqual([]);
  });

  it("says that a trial is lost with its controller, and goes on with the next controller", async () => {
    const { target, runner } = await open();
    const { running } = await underWay(runner, trial({ measureS: 8 }));
    await stack.replaceController();
    await expect(running).rejects.toThrow(/the load controller was replaced during the trial/);
    runner.reset();
    // The worker looks for the next controller by itself.
    await target.recover(other, { measured: false, reason: "lost" });
    expect((await runner.run(trial())).load.invalidReasons).toEqual([]);
  });

  it("a trial outlives the connection: it is asked for again by its id", async () => {
    const { runner, connected } = await open();
    const { running } = await underWay(runner, trial({ measureS: 6 }));
    connected.controller.disconnect();
    expect((await running).load.invalidReasons).toEqual([]);
  });

  it("names what is missing with the command that brings it", async () => {
    const outputs = stack.outputs();
    const load = outputs.loadGenerator!;
    await expect(connect({ ...outputs, loadGenerator: null })).rejects.toThrow(
      /stack dev has no load generator: pulumi config set loadGenerator true --stack dev && pulumi up/,
    );
    await expect(connect({ ...outputs, loadGenerator: { ...load, workers: 0 } })).rejects.toThrow(
      /are asleep: pulumi config set loadAsleep false --stack dev/,
    );
    await expect(connect({ ...outputs, loadGenerator: { ...load, workers: 3 } })).rejects.toThrow(
      /1 of 3 load workers of stack dev are connected/,
    );
    await expect(
      connect({ ...outputs, triton: { ...outputs.triton, podSelector: "app=none" } }),
    ).rejects.toThrow(/no pod of Triton is ready.*pulumi config set asleep false/);
    await expect(
      connect({ ...outputs, loadGenerator: { ...load, controllerPodSelector: "app=none" } }),
    ).rejects.toThrow(/no pod of the load controller of stack .* is ready: npm run explain/);
  });
});

describe("the commands", () => {
  function command(file: string, ...words: string[]): Promise<{ code: number; text: string }> {
    return new Promise((done) =>
      execFile(
        process.execPath,
        ["--import", "tsx", `scripts/${file}.ts`, ...words],
        { cwd: checkout },
        (error, out, err) => done({ code: error === null ? 0 : Number(error.code), text: out + err }),
      ),
    );
  }

  it("preflight looks at the whole stack and changes nothing", async () => {
    const { code, text } = await command("preflight", "--stack", "dev");
    expect(code, text).toBe(0);
    expect(text).toMatch(/ok +stack +dev, dev, nvidia-tesla-t4 in europe-west4-b/);
    expect(text).toMatch(new RegExp(`ok +model of ${own.name} +${own.name}, loaded`));
    expect(text).toMatch(/warning +GPU +GPU metrics absent/);
  });

  it("a sweep that costs more than it may, and that nobody agreed to, says that the stack stays awake", async () => {
    const { code, text } = await command(
      "tune",
      ...["--stack", "dev", "--after", "scale-to-zero", "--max-cost", "0.01"],
    );
    expect(code, text).toBe(2);
    expect(text).toMatch(
      /would be cut short at --max-cost 0\.01\. Start it\? Nobody can be asked here: give --yes/,
    );
    expect(text).toMatch(
      /stack dev is still awake and costs money: .* or pulumi config set asleep true --stack dev/,
    );
  });

  it("an unknown stack, an unknown variant and production without consent end at once", async () => {
    const refused = async (...words: string[]): Promise<string> => {
      const { code, text } = await command("tune", ...words);
      expect(code, text).toBe(2);
      return text;
    };
    expect(await refused("--stack", "nope")).toMatch(
      /the outputs of stack nope cannot be read: error: no stack named 'nope' found\. Known stacks: pulumi stack ls/,
    );
    expect(await refused("--stack", "dev", "--variants", "original")).toMatch(
      /stack dev has no original in its model repository \(it has tftrt_int8_bs8_count4\): add it to repositoryVariants/,
    );
    stack.path(stack.outputs({ environment: "prod" }));
    expect(await refused("--stack", "dev")).toMatch(/serves production.*give --yes-prod if that is meant/);
    stack.path();
  });
});
