/** What Prometheus has to keep. */
export interface StorageInput {
  readonly scrapeIntervalS: number;
  readonly retentionDays: number;
  /** Largest number of servers. */
  readonly servers: number;
  /** Models that a server may have loaded since its start: each keeps its series. */
  readonly models: number;
}

/** Series of one model on one server: Triton's counters and what rules record of them, rounded up. */
const seriesPerModel = 25;
/** Series of one server: GPU, CPU, pinned memory, and what Prometheus notes of its two scrapes. */
const seriesPerServer = 40;
/** Series of the load controller, of the alerts, and a sweep's trials a day, which each leave one. */
const otherSeries = 500;

/** Bytes of a stored sample: at most two (prometheus.io/docs/prometheus/latest/storage, operational aspects). */
const bytesPerSample = 2;

/** Share of the disk that samples may take; the rest is for the write-ahead log and compaction. */
export const sampleShare = 0.8;

/** Smallest disk, GiB: room for the write-ahead log of a busy day, and what a first `pulumi up` made before sizes were derived. */
const leastDiskGi = 20;

/** Bytes of samples that the retention keeps. */
export function sampleBytes({ scrapeIntervalS, retentionDays, servers, models }: StorageInput): number {
  const series = servers * (models * seriesPerModel + seriesPerServer) + otherSeries;
  return (series / scrapeIntervalS) * retentionDays * 86_400 * bytesPerSample;
}

/** Disk that keeps them, whole tens of GiB. */
export function diskSizeGi(input: StorageInput): number {
  const needed = sampleBytes(input) / sampleShare / 2 ** 30;
  return Math.max(leastDiskGi, 10 * Math.ceil(needed / 10));
}
