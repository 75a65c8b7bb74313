/** Uid of the provisioned Prometheus data source. */
export const prometheusUid = "prometheus";

/** Grafana's data-source provisioning for one Prometheus. */
export function dataSources(prometheusUrl: string, scrapeIntervalS: number): string {
  return JSON.stringify({
    apiVersion: 1,
    datasources: [
      {
        name: "Prometheus",
        uid: prometheusUid,
        type: "prometheus",
        access: "proxy",
        url: prometheusUrl,
        isDefault: true,
        editable: false,
        // Panels' rate windows follow from it: four scrapes at least.
        jsonData: { timeInterval: `${scrapeIntervalS}s` },
      },
    ],
  });
}
