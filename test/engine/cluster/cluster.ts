/** A Kubernetes control plane on loopback: etcd, API server, controller manager, scheduler; kwok in place of kubelets. */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { requireTool } from "../../../tools/cache";
import { toolNamed } from "../../../tools/catalogue";
import { KubeApi } from "./kube-api";
import { Program, until } from "./program";
import { freePorts } from "../../free-ports";

/** Containers whose logs tests may set. */
const loggedContainers = ["triton", "nvidia-driver-installer"];

/** Where a port-forward to any pod of a namespace leads: a program of the test on loopback. */
export interface Forward {
  namespace: string;
  podPort: number;
  localPort: number;
}

export interface ClusterOptions {
  /**
   * Folder of the API server's certificate and the administrator's token. Filled by the first cluster and used again by later
   * ones, so that one issuer (`issuer.pem`) and one login serve them all, as Google's do. Default: a folder of its own.
   */
  pki?: string;
  forwards?: readonly Forward[];
}

/** A running cluster. */
export interface Cluster {
  /** `host:port` of the API server. */
  endpoint: string;
  /** Base64 of the PEM, as GKE returns it. */
  caBase64: string;
  /** Bearer token of a cluster administrator. */
  token: string;
  /** Path of an administrator's kubeconfig. */
  kubeconfig: string;
  /** Wall time from the first process to the default service account. */
  readyMs: number;
  api: KubeApi;
  /**
   * What `kubectl logs` prints for a container name in any pod, now and for its previous run: containers do not run here.
   */
  setLog(container: string, text: string): void;
  /** True while all processes run. */
  readonly running: boolean;
  /** Stops everything and waits until the ports are free. */
  stop(): Promise<void>;
}

function healthy(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/health", timeout: 2000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", reject);
  });
}

/** The API server signs its own certificate; the issuer is the last one of the chain that it writes. */
function issuerOf(certificateFile: string): string {
  const blocks = readFileSync(certificateFile, "utf8").match(
    /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----\n?/g,
  );
  const issuer = blocks?.at(-1);
  if (!issuer) throw new Error(`No certificate in ${certificateFile}`);
  return issuer;
}

/** The administrator's bearer token of a pki folder, made at first use. */
export function tokenOf(pki: string): string {
  const file = join(pki, "token");
  if (!existsSync(file)) {
    mkdirSync(pki, { recursive: true });
    writeFileSync(file, randomBytes(16).toString("hex"), { mode: 0o600 });
  }
  return readFileSync(file, "utf8");
}

function kubeconfigText(endpoint: string, caBase64: string, token: string): string {
  return JSON.stringify({
    ...{ apiVersion: "v1", kind: "Config", "current-context": "test" },
    clusters: [
      { name: "test", cluster: { server: `https://${endpoint}`, "certificate-authority-data": caBase64 } },
    ],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "admin" } }],
  });
}

/** The format in which container runtimes keep logs, which the kubelet strips. */
function toContainerLog(text: string): string {
  const time = new Date().toISOString().replace("Z", "000000Z");
  return text
    .split("\n")
    .map((line) => `${time} stderr F ${line}\n`)
    .join("");
}

/** kwok's configuration: what becomes of nodes and pods, their logs, and where forwards lead. */
function kwokConfig(dir: string, forwards: readonly Forward[]): string {
  const apiVersion = "kwok.x-k8s.io/v1alpha1";
  const logFile = (container: string): string => join(dir, "log", `container-${container}.txt`);
  for (const container of loggedContainers) writeFileSync(logFile(container), "");
  const logs = loggedContainers.map((container) => ({
    ...{ containers: [container], logsFile: logFile(container), previousLogsFile: logFile(container) },
  }));
  const documents = [
    { apiVersion, kind: "ClusterLogs", metadata: { name: "logs" }, spec: { logs } },
    ...forwards.map(({ namespace, podPort, localPort }, index) => ({
      ...{ apiVersion, kind: "ClusterPortForward", metadata: { name: `forward-${index}` } },
      spec: {
        selector: { matchNamespaces: [namespace] },
        forwards: [{ ports: [podPort], target: { address: "127.0.0.1", port: localPort } }],
      },
    })),
  ];
  const stages = readFileSync(join(__dirname, "stages.yaml"), "utf8");
  return [stages, ...documents.map((document) => JSON.stringify(document))].join("\n---\n");
}

/** Starts a cluster whose files live under `dir` (emptied first). */
export async function startCluster(dir: string, options: ClusterOptions = {}): Promise<Cluster> {
  const pki = options.pki ?? join(dir, "pki");
  const { programs } = requireTool(toolNamed("kube-testbed"));
  const startedMs = Date.now();
  rmSync(dir, { recursive: true, force: true });
  for (const part of ["etcd", "log"]) mkdirSync(join(dir, part), { recursive: true });
  mkdirSync(pki, { recursive: true });
  const [etcdPort, peerPort, apiPort, managerPort, schedulerPort, kwokPort] = await freePorts(6);
  const running: Program[] = [];
  const start = (name: string, args: string[]): Program => {
    const program = Program.start(name, programs[name]!, args, join(dir, "log", `${name}.log`));
    running.push(program);
    return program;
  };
  const stop = async (): Promise<void> => {
    // Clients before servers: the other way round each would wait for the one that is already gone.
    const [etcd, apiServer, ...clients] = running;
    await Promise.all(clients.map((program) => program.stop(3000)));
    await apiServer?.stop(5000);
    await etcd?.stop(5000);
    rmSync(dir, { recursive: true, force: true });
  };
  const dead = (): void => {
    const program = running.find((candidate) => !candidate.running);
    if (program) throw new Error(`${program.name} has ended:\n${program.logTail()}`);
  };

  try {
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    start("etcd", [
      ...["--data-dir", join(dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn"],
      ...["--listen-client-urls", etcdUrl, "--advertise-client-urls", etcdUrl],
      ...["--listen-peer-urls", peerUrl, "--initial-advertise-peer-urls", peerUrl],
      ...["--initial-cluster", `default=${peerUrl}`],
    ]);
    await until("etcd is healthy", () => (dead(), healthy(etcdPort!)));

    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const keyFile = join(dir, "service-account.key");
    writeFileSync(keyFile, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
    const token = tokenOf(pki);
    writeFileSync(join(dir, "tokens.csv"), `${token},admin,admin,system:masters\n`, { mode: 0o600 });
    start("kube-apiserver", [
      ...[`--etcd-servers=${etcdUrl}`, `--secure-port=${apiPort}`, `--cert-dir=${pki}`],
      ...["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"],
      ...[
        "--authorization-mode=RBAC",
        `--token-auth-file=${join(dir, "tokens.csv")}`,
        "--allow-privileged=true",
      ],
      ...["--service-account-issuer=https://kubernetes.default.svc", `--service-account-key-file=${keyFile}`],
      ...[
        `--service-account-signing-key-file=${keyFile}`,
        "--service-cluster-ip-range=10.96.0.0/16",
        "--kubelet-preferred-address-types=InternalIP",
        "--profiling=false",
      ],
    ]);
    const certificate = join(pki, "apiserver.crt");
    const caPem = await until(
      "the API server has signed its certificate",
      async () => (dead(), issuerOf(certificate)),
    );
    writeFileSync(join(pki, "issuer.pem"), caPem);
    const api = new KubeApi(apiPort!, caPem, token);
    await until(
      "the API server is ready",
      async () => (dead(), (await api.call<string>("GET", "/readyz")) === "ok"),
      60_000,
    );

    const endpoint = `127.0.0.1:${apiPort}`;
    const caBase64 = Buffer.from(caPem).toString("base64");
    const kubeconfig = join(dir, "kubeconfig");
    writeFileSync(kubeconfig, kubeconfigText(endpoint, caBase64, token), { mode: 0o600 });
    const client = [`--kubeconfig=${kubeconfig}`];
    const server = [
      ...client,
      `--authentication-kubeconfig=${kubeconfig}`,
      `--authorization-kubeconfig=${kubeconfig}`,
    ];
    start("kube-controller-manager", [
      ...[...server, "--leader-elect=false", "--bind-address=127.0.0.1", `--secure-port=${managerPort}`],
      ...[`--service-account-private-key-file=${keyFile}`, "--use-service-account-credentials=false"],
      ...[`--cert-dir=${join(dir, "certs-manager")}`, "--node-monitor-grace-period=5m"],
    ]);
    start("kube-scheduler", [
      ...[...server, "--leader-elect=false", "--bind-address=127.0.0.1", `--secure-port=${schedulerPort}`],
    ]);
    const kwokFile = join(dir, "kwok.yaml");
    writeFileSync(kwokFile, kwokConfig(dir, options.forwards ?? []));
    start("kwok", [
      ...[...client, `--config=${kwokFile}`, "--manage-all-nodes=true", "--cidr=10.244.0.0/16"],
      // Heartbeats: without them the nodes are NotReady after the grace period, and so are their pods.
      "--node-lease-duration-seconds=40",
      ...["--node-ip=127.0.0.1", `--node-port=${kwokPort}`, `--server-address=127.0.0.1:${kwokPort}`],
    ]);
    await until("the default service account exists", async () => {
      dead();
      return api.get("/api/v1/namespaces/default/serviceaccounts/default");
    });
    return {
      ...{ endpoint, caBase64, token, kubeconfig, api, readyMs: Date.now() - startedMs },
      setLog: (container, text) => {
        if (!loggedContainers.includes(container))
          throw new Error(`No log for ${container}: add it to loggedContainers`);
        writeFileSync(join(dir, "log", `container-${container}.txt`), toContainerLog(text));
      },
      get running() {
        return running.every((program) => program.running);
      },
      stop: async () => {
        api.close();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
