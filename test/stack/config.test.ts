/** The configuration parser: every conflict is found before anything is created, and all of them at once. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tensorrtVariants } from "../../model-repo/catalogue";
import { parseConfig, type RawConfig } from "../../stack/config";
import { ConfigError, type ConfigProblem } from "../../stack/config-error";
import { configKeys } from "../../stack/config-keys";

const valid: RawConfig = { project: "my-project-1" };

function problems(raw: RawConfig): readonly ConfigProblem[] {
  try {
    parseConfig({ ...valid, ...raw });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

describe("defaults", () => {
  it("need nothing but a project", () => {
    const config = parseConfig(valid);
    expect(config).toMatchObject({
      location: "us-central1-a",
      zonesUsed: ["us-central1-a", "us-central1-b", "us-central1-c"],
      driverMode: "daemonset",
      triton: "nvcr.io/nvidia/tritonserver:25.02-py3",
      converter: "nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
      tritonReplicas: 1,
      protect: false,
      bytesPerRequest: 602_112,
    });
    expect(config.variants.served.name).toBe("tftrt_fp16");
  });

  it("are valid for every key", () => {
    expect(problems({})).toEqual([]);
  });
});

describe("the ONNX/TensorRT path", () => {
  const plans: RawConfig = {
    artefactPath: "onnx-tensorrt",
    variant: "trt_int8_bs64_count2",
    repositoryVariants: JSON.stringify(tensorrtVariants.map(({ name }) => name)),
  };

  it("serves the catalogue's plans, whose requests are a quarter of the bytes", () => {
    expect(parseConfig({ ...valid, ...plans })).toMatchObject({
      converter: "nvcr.io/nvidia/tensorrt:25.02-py3",
      bytesPerRequest: 150_528,
      variants: { served: { name: "trt_int8_bs64_count2", artefact: { name: "trt_int8_bs64" } } },
    });
    // Releases without a TensorFlow backend will do.
    expect(problems({ ...plans, tritonVersion: "25.10" })).toEqual([]);
    expect(problems({ ...plans, artefactPath: "tf-trt" })).toContainEqual({
      key: "artefactPath",
      message: expect.stringMatching(
        /tf-trt does not make trt_int8_bs64_count2.*variants of this one: original, /,
      ) as string,
    });
  });
});

describe("what follows from the keys", () => {
  it.each<[RawConfig, object]>([
    [{ environment: "prod" }, { protect: true }],
    [{ environment: "prod", deletionProtection: "off" }, { protect: false }],
    [{ deletionProtection: "on" }, { protect: true }],
    [{ clusterLocation: "regional" }, { location: "us-central1" }],
    [{ zones: '["us-central1-c"]' }, { location: "us-central1-c", zonesUsed: ["us-central1-c"] }],
    [{ asleep: "true" }, { tritonReplicas: 0, load: { workers: 0, maxNodes: 2 } }],
    [{ loadAsleep: "true" }, { tritonReplicas: 1, load: { workers: 0, maxNodes: 2 } }],
    [{}, { loadHistoryDiskGi: 0 }],
    [{ loadHistory: "persistent" }, { loadHistoryDiskGi: 10 }],
    [{ loadHistory: "persistent", loadGenerator: "false" }, { loadHistoryDiskGi: 0 }],
    [{ replicas: "2", gpuMaxNodes: "2" }, { tritonReplicas: 2 }],
    [{ replicas: "2", gpusPerNode: "2", tritonCpu: "3", tritonMemoryGi: "10" }, { tritonReplicas: 2 }],
    [
      { autoscale: "true", autoscaleRatePerS: "800", gpuMaxNodes: "2", loadGenerator: "false" },
      { tritonReplicas: undefined },
    ],
    [
      { namespacePrefix: "a-" },
      { namespaces: { triton: "a-triton", load: "a-load", monitoring: "a-monitoring" } },
    ],
    [
      { labels: '{"team":"vision"}' },
      { resourceLabels: { team: "vision", stack: "triton-slo", environment: "dev" } },
    ],
    [{ tritonVersion: "24.10" }, { converter: "nvcr.io/nvidia/tensorflow:24.10-tf2-py3" }],
    [
      { imageDigests: `{"nvcr.io/nvidia/tritonserver:25.02-py3":"sha256:${"a".repeat(64)}"}` },
      { triton: `nvcr.io/nvidia/tritonserver:25.02-py3@sha256:${"a".repeat(64)}` },
    ],
  ])("%j", (raw, expected) => {
    expect(parseConfig({ ...valid, ...raw })).toMatchObject(expected);
  });

  it("takes the variant as an object, and uploads it with the others", () => {
    const { variants } = parseConfig({
      ...valid,
      variant: '{"artefact":"tftrt_int8_bs16","maxBatchSize":16,"instanceCount":3,"queueDelayUs":5000}',
      repositoryVariants: '["original"]',
    });
    expect(variants.served).toMatchObject({
      instanceCount: 3,
      queueDelayUs: 5000,
      artefact: { precision: "int8" },
    });
    expect(variants.repository.map(({ name }) => name)).toEqual([variants.served.name, "original"]);
  });
});

describe("conflicts", () => {
  it.each<[string, RawConfig, string, RegExp]>([
    ["no project", { project: "" }, "project", /pulumi config set project/],
    ["bad project", { project: "My Project" }, "project", /not a project id/],
    ["unknown key", { replcas: "2" }, "replcas", /no key of this stack.*replicas/],
    ["not a number", { replicas: "two" }, "replicas", /not a whole number/],
    ["out of range", { sloPercentile: "100" }, "sloPercentile", /use 50 to 99/],
    ["not a choice", { driverMode: "operator" }, "driverMode", /none of daemonset, gke-default, gke-latest/],
    ["not a list", { zones: "us-central1-a" }, "zones", /not a list/],
    ["not an object", { labels: "a=b" }, "labels", /not an object/],
    ["bad label", { labels: '{"Team":"x"}' }, "labels", /lower-case/],
    ["unknown variant", { variant: "tftrt_fp17" }, "variant", /tftrt_fp16/],
    [
      "variant object",
      { variant: '{"artefact":"tftrt_fp16_bs8","maxBatchSize":16}' },
      "variant",
      /conversion proposal/,
    ],
    ["broken JSON", { variant: '{"artefact"' }, "variant", /not a name or an object/],
    [
      "two variants of one name",
      { repositoryVariants: '[{"name":"tftrt_fp16","artefact":"original"}]' },
      "repositoryVariants",
      /two different variants are called "tftrt_fp16"/,
    ],
    ["zone of another region", { zones: '["us-east1-c"]' }, "zones", /not in region us-central1/],
    [
      "zone without the GPU",
      { zones: '["us-central1-f"]' },
      "zones",
      /not known to have nvidia-tesla-t4.*acceleratorZones/,
    ],
    ["region without the GPU", { region: "europe-north1" }, "zones", /no zone of europe-north1/],
    ["unknown GPU", { gpuType: "nvidia-a100" }, "gpuType", /nvidia-tesla-t4, nvidia-l4/],
    [
      "GPU on the wrong machine",
      { gpuMachineType: "n2-standard-8" },
      "gpuMachineType",
      /cannot be attached.*n1/,
    ],
    [
      "L4 on N1",
      { gpuType: "nvidia-l4", acceleratorZones: '["us-central1-a"]', conversionVm: "false" },
      "gpuMachineType",
      /family g2/,
    ],
    ["too many vCPUs for one GPU", { gpuMachineType: "n1-standard-64" }, "gpuMachineType", /at most 48/],
    ["unknown machine", { gpuMachineType: "n1-standard-7" }, "gpuMachineType", /not known/],
    [
      "wrong number of GPUs",
      { gpusPerNode: "3", tritonCpu: "1", tritonMemoryGi: "4" },
      "gpusPerNode",
      /use 1, 2, 4/,
    ],
    [
      "conversion machine",
      { conversionMachineType: "e2-standard-8" },
      "conversionMachineType",
      /cannot be attached/,
    ],
    ["DCGM with the DaemonSet's driver", { managedDcgm: "true" }, "managedDcgm", /gke-default/],
    [
      "DCGM in a cluster that is not the stack's",
      {
        ...{
          managedDcgm: "true",
          driverMode: "gke-default",
          existingCluster: "shared",
          conversionVm: "false",
        },
        ...{ zones: '["us-central1-a"]' },
      },
      "managedDcgm",
      /not this stack's/,
    ],
    [
      "two that read the same pods",
      { managedPrometheus: "true" },
      "managedPrometheus",
      /monitoring to false/,
    ],
    [
      "a disk that does not hold the retention",
      { scrapeIntervalS: "1", retentionDays: "400", prometheusDiskGi: "50" },
      "prometheusDiskGi",
      /50 GiB do not hold 400 days .* set it to 6\d/,
    ],
    [
      "latest driver on Ubuntu",
      { driverMode: "gke-latest", gpuImageType: "UBUNTU_CONTAINERD" },
      "gpuImageType",
      /COS_CONTAINERD/,
    ],
    ["DaemonSet on Ubuntu", { gpuImageType: "UBUNTU_CONTAINERD" }, "gpuImageType", /gke-default/],
    ["reservation for Spot", { gpuReservation: "r", gpuSpot: "true" }, "gpuReservation", /gpuSpot/],
    ["more nodes at least than at most", { gpuMinNodes: "2" }, "gpuMinNodes", /above gpuMaxNodes/],
    ["more nodes first than at most", { gpuInitialNodes: "2" }, "gpuInitialNodes", /counts per zone/],
    ["first nodes in every zone", { gpuInitialNodes: "1" }, "gpuInitialNodes", /counts per zone/],
    ["more servers than GPUs", { replicas: "2" }, "replicas", /raise gpuMaxNodes to 2/],
    [
      "autoscaler over the GPUs",
      { autoscale: "true", autoscaleRatePerS: "9", autoscaleMaxReplicas: "3", loadGenerator: "false" },
      "replicas",
      /3 servers need 3 GPUs/,
    ],
    ["too much CPU", { tritonCpu: "8" }, "tritonCpu", /use at most 7/],
    ["too much memory", { tritonMemoryGi: "28" }, "tritonMemoryGi", /use at most 2\d/],
    [
      "SavedModel without TensorFlow backend",
      { tritonVersion: "25.03" },
      "tritonVersion",
      /no TensorFlow backend.*25\.02/,
    ],
    ["broken Workload Identity", { tritonVersion: "22.08" }, "tritonVersion", /Workload Identity/],
    ["broken Workload Identity, end", { tritonVersion: "23.02" }, "tritonVersion", /23\.03/],
    ["no release", { tritonVersion: "2.51.0" }, "tritonVersion", /YY\.MM/],
    [
      "converter of another month",
      { converterVersion: "25.01" },
      "converterVersion",
      /TensorRT must be the same/,
    ],
    ["latest", { tritonImage: "nvcr.io/nvidia/tritonserver:latest" }, "tritonImage", /exact tag/],
    ["no tag", { loadImage: "registry.example/load" }, "loadImage", /no tag/],
    ["port is no tag", { loadImage: "registry.example:5000/load" }, "loadImage", /no tag/],
    [
      "image of another month",
      { tritonImage: "nvcr.io/nvidia/tritonserver:24.10-py3" },
      "tritonImage",
      /is release 24\.10/,
    ],
    [
      "converter image of another month",
      { converterImage: "nvcr.io/nvidia/tensorflow:24.10-tf2-py3" },
      "converterImage",
      /is release 24\.10/,
    ],
    ["bad digest", { imageDigests: '{"a:1":"sha256:12"}' }, "imageDigests", /not a digest/],
    [
      "path that does not make the variants",
      { artefactPath: "onnx-tensorrt" },
      "artefactPath",
      /tensorflow_savedmodel/,
    ],
    ["too little time to be ready", { readinessBudgetS: "1200" }, "readinessBudgetS", /1500 or more/],
    ["model that loads too long", { modelLoadBudgetS: "1000" }, "readinessBudgetS", /1900 or more/],
    ["all models at once", { modelControlMode: "none" }, "modelControlMode", /loads all 7 variants/],
    ["queue delay over the SLO", { sloBoundMs: "20" }, "variant", /queue delay of 20000 us/],
    [
      "autoscaler without metrics",
      {
        autoscale: "true",
        autoscaleRatePerS: "9",
        gpuMaxNodes: "2",
        loadGenerator: "false",
        monitoring: "false",
      },
      "autoscale",
      /monitoring/,
    ],
    [
      "autoscaler without a target",
      { autoscale: "true", gpuMaxNodes: "2", loadGenerator: "false" },
      "autoscaleRatePerS",
      /npm run tune/,
    ],
    [
      "autoscaler with nothing to do",
      { autoscale: "true", autoscaleRatePerS: "9", replicas: "2", gpuMaxNodes: "2", loadGenerator: "false" },
      "autoscaleMaxReplicas",
      /nothing to scale/,
    ],
    [
      "autoscaler during sweeps",
      { autoscale: "true", autoscaleRatePerS: "9", gpuMaxNodes: "2" },
      "autoscale",
      /loadGenerator/,
    ],
    [
      "part of an existing network",
      { existingNetwork: "vpc" },
      "existingNetwork",
      /missing: existingSubnetwork/,
    ],
    ["VM beside an existing cluster", { existingCluster: "c" }, "existingCluster", /conversionVm/],
    ["bad range", { podCidr: "10.20.0.0" }, "podCidr", /not a CIDR block/],
    ["range with host bits", { podCidr: "10.20.0.1/16" }, "podCidr", /not a CIDR block/],
    ["overlapping ranges", { podCidr: "10.0.0.0/8" }, "podCidr", /overlap/],
    ["public without networks", { controlPlaneAccess: "public" }, "authorizedNetworks", /must name/],
    [
      "networks without public",
      { authorizedNetworks: '["203.0.113.0/24"]' },
      "authorizedNetworks",
      /no effect/,
    ],
    [
      "open to everybody",
      { controlPlaneAccess: "public", authorizedNetworks: '["0.0.0.0/0"]' },
      "authorizedNetworks",
      /everybody/,
    ],
    ["budget without account", { budget: "100" }, "billingAccount", /gcloud billing accounts list/],
    ["bad currency", { budgetCurrency: "dollar" }, "budgetCurrency", /USD/],
    ["too few workers", { loadWorkers: "1" }, "loadWorkers", /use 3 or more/],
    [
      "no room for a load worker",
      { loadMachineType: "n2-standard-2" },
      "loadMachineType",
      /gets 2 whole cores.*use a machine with 3 vCPUs or more/,
    ],
    ["waiting awake too long", { loadBusyWaitMs: "11" }, "loadBusyWaitMs", /use 0 to 10/],
    ["too few load nodes", { loadMaxNodes: "1" }, "loadMaxNodes", /16 Gbit\/s.*use 2 or more/],
    ["bad member", { tuneMembers: '["alice@example.com"]' }, "tuneMembers", /user:E-MAIL/],
    ["bad prefix", { namespacePrefix: "A_" }, "namespacePrefix", /cannot start a namespace/],
  ])("%s", (_what, raw, key, message) => {
    const found = problems(raw);
    expect(found.map((problem) => problem.key)).toEqual([key]);
    expect(found[0]?.message).toMatch(message);
  });

  it("are all reported in one error, each once", () => {
    const found = problems({
      project: "",
      replicas: "3",
      managedDcgm: "true",
      tritonVersion: "25.03",
      podCidr: "x",
      nonsense: "1",
    });
    expect(found.map(({ key }) => key).sort()).toEqual(
      ["managedDcgm", "nonsense", "podCidr", "project", "replicas", "tritonVersion"].sort(),
    );
  });

  it("are counted and listed in the error's message", () => {
    expect(() => parseConfig({ project: "", replicas: "two" })).toThrow(
      /^The stack's configuration has 2 problems:\n +replicas: .*\n +project: /,
    );
  });
});

describe("any configuration", () => {
  const anyRaw = fc.dictionary(
    fc.oneof(fc.constantFrom(...Object.keys(configKeys)), fc.string({ minLength: 1, maxLength: 12 })),
    fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.jsonValue().map((value) => JSON.stringify(value)),
      fc.integer().map(String),
      fc.constantFrom("true", "false", ""),
    ),
    { maxKeys: 8 },
  );

  it("is either read whole or refused with problems that each name a key", () => {
    fc.assert(
      fc.property(anyRaw, (raw) => {
        for (const problem of problems(raw)) {
          expect(problem.key).not.toBe("");
          expect(problem.message.length).toBeGreaterThan(10);
        }
      }),
      { numRuns: 500 },
    );
  });

  it("reports a broken key whatever else is broken", () => {
    fc.assert(
      fc.property(anyRaw, (raw) => {
        expect(problems({ ...raw, replicas: "many" }).map(({ key }) => key)).toContain("replicas");
      }),
    );
  });
});
