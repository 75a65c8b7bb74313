import { images } from "../components/images";
import { pinned } from "../components/images";
import { collectorNamespaces } from "../monitoring/scrape-jobs";
import { diskSizeGi } from "../monitoring/storage";
import type { ConfigValues } from "./config-keys";
import { loadSize, requestBytes } from "./load-sizing";
import { machineShape } from "./machines";
import { converterRequirements, type SourceModel } from "./source-model";
import type { StackVariants } from "./variants";
import { acceleratorZones } from "./zones";

/** Smallest disk of type pd-balanced, GiB. */
const smallestDiskGi = 10;

/** Everything that follows from the keys. */
export interface DerivedConfig {
  readonly variants: StackVariants;
  /** The key `model`, read. */
  readonly sourceModel: SourceModel;
  /** Requirements file that the converter installs; null for none. */
  readonly converterRequirements: string | null;
  /** Deletion protection of cluster, bucket and disks. */
  readonly protect: boolean;
  /** Zones with the GPU type that the table and `acceleratorZones` know in the region. */
  readonly knownZones: readonly string[];
  /** Zones of nodes and VM, best first. */
  readonly zonesUsed: readonly string[];
  /** Location of the control plane: a zone or the region. */
  readonly location: string;
  readonly namespaces: { readonly triton: string; readonly load: string; readonly monitoring: string };
  readonly triton: string;
  readonly converterRelease: string;
  readonly converter: string;
  /** Bytes of one request's payload. */
  readonly bytesPerRequest: number;
  /** Workers and machines that reach the peak rate; zero workers while they are asleep. */
  readonly load: { readonly workers: number; readonly maxNodes: number };
  /** Disk of the load controller's history, GiB; 0: it has none. */
  readonly loadHistoryDiskGi: number;
  /** Servers; undefined when the autoscaler owns the number. */
  readonly tritonReplicas: number | undefined;
  /** Namespaces whose pods read the metrics of servers and load controller. */
  readonly metricsReaders: readonly string[];
  /** Disk of Prometheus, GiB: what retention and readings need, and what was set. */
  readonly prometheusDiskNeededGi: number;
  readonly prometheusDiskSizeGi: number;
  /** Labels of every Google Cloud resource. */
  readonly resourceLabels: Readonly<Record<string, string>>;
}

/** The whole configuration: the keys' values and what follows from them. */
export interface StackConfig extends ConfigValues, DerivedConfig {}

/** Computes what follows from the keys; never fails, so that the rules can look at it even when something is wrong. */
export function deriveConfig(
  values: ConfigValues,
  variants: StackVariants,
  sourceModel: SourceModel,
): StackConfig {
  const knownZones = acceleratorZones(values.gpuType, values.region, values.acceleratorZones);
  const zonesUsed = values.zones.length > 0 ? values.zones : knownZones;
  const prefix = values.namespacePrefix;
  const converterRelease = values.converterVersion || values.tritonVersion;
  const bytesPerRequest = Math.max(
    ...variants.repository.map((variant) => requestBytes(variant.artefact.input)),
  );
  const prometheusDiskNeededGi = diskSizeGi({
    scrapeIntervalS: values.scrapeIntervalS,
    retentionDays: values.retentionDays,
    servers: values.autoscale ? values.autoscaleMaxReplicas : values.replicas,
    models: variants.repository.length,
  });
  const namespaces = { triton: `${prefix}triton`, load: `${prefix}load`, monitoring: `${prefix}monitoring` };
  return {
    ...values,
    variants,
    sourceModel,
    converterRequirements: converterRequirements(values.artefactPath, sourceModel),
    protect:
      values.deletionProtection === "on" ||
      (values.deletionProtection === "by-environment" && values.environment === "prod"),
    knownZones,
    zonesUsed,
    location: values.clusterLocation === "regional" ? values.region : (zonesUsed[0] ?? ""),
    namespaces,
    triton: pinned(values.tritonImage || images.triton(values.tritonVersion), values.imageDigests),
    converterRelease,
    converter: pinned(
      values.converterImage || converterFor(values.artefactPath, converterRelease),
      values.imageDigests,
    ),
    bytesPerRequest,
    load: loadOf(values, bytesPerRequest),
    loadHistoryDiskGi: values.loadGenerator && values.loadHistory === "persistent" ? smallestDiskGi : 0,
    tritonReplicas: values.asleep ? 0 : values.autoscale ? undefined : values.replicas,
    metricsReaders: values.managedPrometheus ? collectorNamespaces : [namespaces.monitoring],
    prometheusDiskNeededGi,
    prometheusDiskSizeGi: values.prometheusDiskGi || prometheusDiskNeededGi,
    resourceLabels: { ...values.labels, stack: "triton-slo", environment: values.environment },
  };
}

function converterFor(path: ConfigValues["artefactPath"], release: string): string {
  return path === "tf-trt" ? images.tensorflow(release) : images.tensorrt(release);
}

function loadOf(values: ConfigValues, bytesPerRequest: number): DerivedConfig["load"] {
  const shape = machineShape(values.loadMachineType);
  const size = shape ? loadSize(values.peakRatePerS, bytesPerRequest, shape) : { workers: 1, nodes: 1 };
  return {
    workers: values.asleep || values.loadAsleep ? 0 : values.loadWorkers || size.workers,
    maxNodes: values.loadMaxNodes || size.nodes,
  };
}
