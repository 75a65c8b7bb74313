import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { clusterProblem, explained } from "../../../targets/stack/cluster-error";
import { Kube } from "../../../targets/stack/kube";
import { readStackOutputs } from "../../../targets/stack/read-outputs";
import { TargetError } from "../../../targets/target-error";
import { freePorts } from "../../free-ports";

let bin: string;

/** Programs of the test, and nothing else but a shell. */
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), "cluster-error-"));
  const path = process.env["PATH"];
  process.env["PATH"] = [bin, "/bin", "/usr/bin"].join(delimiter);
  onTestFinished(() => {
    process.env["PATH"] = path;
    rmSync(bin, { recursive: true, force: true });
  });
});

function program(name: string, text: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
  chmodSync(join(bin, name), 0o755);
}

const credential = JSON.stringify({
  apiVersion: "client.authentication.k8s.io/v1beta1",
  kind: "ExecCredential",
  status: { token: "none" },
});

/** What a sweep says that looks for pods at this endpoint. */
async function lookAt(server: string): Promise<string> {
  const cluster = { name: "dev", location: "here", server, caCertificate: "", credentialsCommand: "none" };
  const kube = await Kube.connect(cluster);
  const failure = await explained({ stack: "dev", cluster, action: "list pods in triton" }, () =>
    kube.pods("triton", "app=triton"),
  ).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(TargetError);
  return (failure as TargetError).message;
}

describe("the way to a stack's Kubernetes API", () => {
  it("needs the login plugin, and says how to get it", async () => {
    process.env["PATH"] = bin;
    expect(await lookAt("https://127.0.0.1:9")).toBe(
      "stack dev needs gke-gcloud-auth-plugin to log in to its cluster: gcloud components install gke-gcloud-auth-plugin",
    );
  });

  it("needs a login: the plugin's words are shown in one line", async () => {
    program(
      "gke-gcloud-auth-plugin",
      "echo 'ERROR: (gcloud.config)\n\n Reauthentication required.' >&2; exit 1",
    );
    expect(await lookAt("https://127.0.0.1:9")).toBe(
      "the login to the cluster of stack dev failed: gcloud auth login (ERROR: (gcloud.config) Reauthentication required.)",
    );
  });

  it("needs a network that leads there", async () => {
    program("gke-gcloud-auth-plugin", `echo '${credential}'`);
    const [port] = await freePorts(1);
    expect(await lookAt(`https://127.0.0.1:${port}`)).toMatch(
      /^the Kubernetes API of stack dev at https:\/\/127\.0\.0\.1:\d+ cannot be reached \(connect ECONNREFUSED .*controlPlaneAccess lets this machine in$/,
    );
  });

  it.each([
    [401, /does not accept your login: gcloud auth login$/],
    [403, /^you may not list pods in triton in the cluster of stack dev: add yourself to tuneMembers/],
    [404, /it is not there; .*pulumi up --refresh --stack dev$/],
    [503, /answers with status 503; try again/],
  ])("a refusal with status %i says what to do", (code, message) => {
    const call = { stack: "dev", cluster: { server: "https://k" }, action: "list pods in triton" };
    expect(clusterProblem(Object.assign(new Error("long body"), { code }), call)).toMatch(message);
  });

  it("leaves errors of another kind as they are", () => {
    const call = { stack: "dev", cluster: { server: "https://k" }, action: "list pods" };
    expect(clusterProblem(new TypeError("x is undefined"), call)).toBeNull();
    expect(clusterProblem(new TargetError("known already"), call)).toBeNull();
  });
});

describe("a stack's outputs", () => {
  it("need the pulumi command", async () => {
    process.env["PATH"] = bin;
    await expect(readStackOutputs("dev")).rejects.toThrow(/--stack needs the pulumi command: install it/);
  });

  it("give the reason and not a warning before it when they cannot be read", async () => {
    program(
      "pulumi",
      "echo 'warning: a new version' >&2; echo \"error: no stack named 'dev' found\" >&2; exit 255",
    );
    await expect(readStackOutputs("dev")).rejects.toThrow(
      /^the outputs of stack dev cannot be read: error: no stack named 'dev' found\. Known stacks: pulumi stack ls$/,
    );
  });

  it("are refused when they are none, or of something else", async () => {
    program("pulumi", "echo hello");
    await expect(readStackOutputs("dev")).rejects.toThrow(
      /prints no JSON \("hello\\n"\): check that the pulumi/,
    );
    program("pulumi", "echo '{}'");
    await expect(readStackOutputs("dev")).rejects.toThrow(
      /stack dev has no outputs: .*run pulumi up --stack dev/,
    );
    program("pulumi", `echo '{"url":"x"}'`);
    await expect(readStackOutputs("dev")).rejects.toThrow(/^stack dev: /);
  });
});
