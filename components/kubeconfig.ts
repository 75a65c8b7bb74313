/** What a kubeconfig needs to reach one cluster. */
export interface KubeconfigInput {
  /** Context, cluster and user name. */
  readonly name: string;
  /** Server URL. */
  readonly server: string;
  /** Base64 CA certificate; empty when the server's certificate is publicly signed. */
  readonly caCertificate: string;
  /** A bearer token; undefined makes clients run `gke-gcloud-auth-plugin`, so that no secret is stored. */
  readonly token?: string;
}

/** A kubeconfig as JSON, which every reader of kubeconfig YAML takes. */
export function kubeconfig(input: KubeconfigInput): string {
  const { name, server, caCertificate, token } = input;
  const user =
    token === undefined
      ? {
          exec: {
            apiVersion: "client.authentication.k8s.io/v1beta1",
            command: "gke-gcloud-auth-plugin",
            installHint:
              "Install gke-gcloud-auth-plugin: gcloud components install gke-gcloud-auth-plugin (or the package google-cloud-cli-gke-gcloud-auth-plugin).",
            provideClusterInfo: true,
            interactiveMode: "Never",
          },
        }
      : { token };
  const cluster = caCertificate === "" ? { server } : { server, "certificate-authority-data": caCertificate };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
    users: [{ name, user }],
  });
}
