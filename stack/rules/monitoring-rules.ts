import type { ConfigRule } from "../config-rules";

/** Rules of monitoring, the stack's own and Google's. */
export const monitoringRules: readonly ConfigRule[] = [
  {
    keys: ["managedPrometheus", "monitoring"],
    problem: ({ managedPrometheus, monitoring }) =>
      managedPrometheus && monitoring
        ? "reads what the stack's own Prometheus reads, and alerts twice; set monitoring to false, or this to false"
        : null,
  },
  {
    keys: ["managedDcgm", "existingCluster"],
    problem: ({ managedDcgm, existingCluster }) =>
      managedDcgm && existingCluster !== ""
        ? `is a setting of the cluster, and ${existingCluster} is not this stack's; switch it on there (gcloud container clusters update --monitoring), and set this to false`
        : null,
  },
  {
    keys: ["prometheusDiskGi", "retentionDays", "scrapeIntervalS", "replicas", "autoscaleMaxReplicas"],
    problem: ({ monitoring, prometheusDiskGi, prometheusDiskNeededGi, retentionDays, scrapeIntervalS }) =>
      monitoring && prometheusDiskGi !== 0 && prometheusDiskGi < prometheusDiskNeededGi
        ? `${prometheusDiskGi} GiB do not hold ${retentionDays} days of readings every ${scrapeIntervalS} s; set it to ${prometheusDiskNeededGi} or more, or to 0, or lower retentionDays`
        : null,
  },
];
