import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { startCluster, type Cluster } from "./cluster/cluster";
import { requireTool } from "../../tools/cache";
import { toolNamed } from "../../tools/catalogue";
import { Program, until } from "./cluster/program";
import { freePorts } from "../free-ports";

let dir: string | undefined;
let cluster: Cluster | undefined;
afterEach(async () => {
  await cluster?.stop();
  cluster = undefined;
  if (dir) rmSync(dir, { recursive: true, force: true });
});

/** Command lines of processes that mention a text. */
function processesWith(text: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return command.includes(text) ? [command] : [];
      } catch {
        return [];
      }
    });
}

const refused = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("connect", () => (socket.destroy(), resolve(false)));
    socket.on("error", () => resolve(true));
  });

describe("cluster on loopback", () => {
  it("is ready within 30 s, runs nodes and pods, and leaves nothing behind", async () => {
    dir = mkdtempSync(join(tmpdir(), "testbed-"));
    const web = createServer((_request, response) => response.end("from the test"));
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    const localPort = (web.address() as AddressInfo).port;
    cluster = await startCluster(join(dir, "cluster"), {
      forwards: [{ namespace: "default", podPort: 80, localPort }],
    });
    expect(cluster.readyMs).toBeLessThan(30_000);
    const { api } = cluster;
    await api.create("/api/v1/nodes", {
      ...{ apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } },
      status: { capacity: { cpu: "4", pods: "10" }, allocatable: { cpu: "4", pods: "10" } },
    });
    await api.create("/api/v1/namespaces/default/pods", {
      metadata: { name: "one" },
      spec: { containers: [{ name: "triton", image: "none:1" }] },
    });
    const pod = await until("the pod runs", async () => {
      const found = await api.get("/api/v1/namespaces/default/pods/one");
      return found?.status?.phase === "Running" && found;
    });
    expect(pod.spec?.nodeName).toBe("node-1");

    cluster.setLog("triton", "first\nsecond");
    expect(await api.call("GET", "/api/v1/namespaces/default/pods/one/log?container=triton")).toBe(
      "first\nsecond\n",
    );
    const [forwarded] = await freePorts(1);
    const { kubectl } = requireTool(toolNamed("kube-testbed")).programs;
    const forward = Program.start(
      "port-forward",
      kubectl!,
      [
        "--kubeconfig",
        cluster.kubeconfig,
        "port-forward",
        "pod/one",
        `${forwarded}:80`,
        "--address=127.0.0.1",
      ],
      join(dir, "port-forward.log"),
    );
    await until(
      "the forward answers",
      async () => (await (await fetch(`http://127.0.0.1:${forwarded}/`)).text()) === "from the test",
    );
    await forward.stop();
    web.close();

    const port = Number(cluster.endpoint.split(":")[1]);
    await cluster.stop();
    expect(await refused(port)).toBe(true);
    await until("no program is left", async () => processesWith(dir!).length === 0, 10_000);
    expect(existsSync(join(dir, "cluster"))).toBe(false);
  });

  it("ends with the process that started it, even if that is killed", async () => {
    dir = mkdtempSync(join(tmpdir(), "testbed-"));
    const script = `
      const { startCluster } = require(${JSON.stringify(join(__dirname, "cluster", "cluster.ts"))});
      startCluster(${JSON.stringify(join(dir, "cluster"))}).then(() => console.log("ready"));`;
    const owner = spawn(process.execPath, ["--import", "tsx", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((resolve, reject) => {
      owner.stdout.once("data", resolve);
      owner.once("exit", (code) => reject(new Error(`the owner ended with ${code}`)));
    });
    expect(processesWith(dir).length).toBeGreaterThanOrEqual(5);
    owner.removeAllListeners("exit").kill("SIGKILL");
    await until("all programs have ended", async () => processesWith(dir!).length === 0, 30_000);
  });
});
