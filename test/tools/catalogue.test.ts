import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { images } from "../../components/images";
import { tools, toolNamed, versions } from "../../tools/catalogue";

const root = join(__dirname, "..", "..");
const goMod = (tool: string): string => readFileSync(join(root, "tools", "go", tool, "go.mod"), "utf8");
const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  dependencies: Record<string, string>;
};

describe("pinned versions agree", () => {
  it("Pulumi's CLI is that of the SDK", () => {
    expect(versions.pulumi).toBe(dependencies["@pulumi/pulumi"]);
    expect(goMod("pulumi-cli")).toContain(`github.com/pulumi/pulumi/pkg/v3 v${versions.pulumi}`);
  });

  it("the Kubernetes provider announces the version of its SDK", () => {
    expect(versions.kubernetesProvider).toBe(dependencies["@pulumi/kubernetes"]);
  });

  it("the test bed's go.mod has the versions that the catalogue tells", () => {
    expect(goMod("kube-testbed")).toContain(`k8s.io/kubernetes v${versions.kubernetes}`);
    expect(goMod("kube-testbed")).toContain(`go.etcd.io/etcd/server/v3 v${versions.etcd}`);
    expect(goMod("kube-testbed")).toContain(`sigs.k8s.io/kwok v${versions.kwok}`);
  });

  it("Prometheus is the one that the stack deploys; its module counts 3.x.y as 0.3xx.y", () => {
    expect(images.prometheus.split(":v")[1]).toBe(versions.prometheus);
    const [major = "", minor = "", patch = ""] = versions.prometheus.split(".");
    expect(goMod("prometheus")).toContain(
      `github.com/prometheus/prometheus v0.${major}${minor.padStart(2, "0")}.${patch}`,
    );
  });

  it("actionlint is the one that its module names", () => {
    expect(goMod("actionlint")).toContain(`github.com/rhysd/actionlint v${versions.actionlint}`);
  });

  it("Triton's wheel is pinned by version and checksum", () => {
    const requirements = readFileSync(join(root, "tools", "triton", "requirements.txt"), "utf8");
    expect(requirements).toMatch(
      new RegExp(`^nvidia-pytriton==${versions.pytriton} --hash=sha256:[0-9a-f]{64}$`, "m"),
    );
  });
});

describe("catalogue", () => {
  it("every Go tool has its checksums", () => {
    for (const tool of tools.filter((one) => one.needs === "go")) {
      expect(readFileSync(join(root, "tools", "go", tool.name, "go.sum"), "utf8").length).toBeGreaterThan(
        2_000,
      );
    }
  });

  it("an unknown name lists the known ones", () => {
    expect(() => toolNamed("nosuch")).toThrow(
      "Known: kube-testbed, pulumi-cli, pulumi-provider, prometheus, triton",
    );
  });
});
