import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Kube } from "../../../targets/stack/kube";
import { selfSigned } from "../../loadgen/support/certificate";

/** A login plugin that hands out token 1, 2, ...; each lasts so many seconds. @returns how often it ran */
function plugin(lastsS: number): () => number {
  const bin = mkdtempSync(join(tmpdir(), "login-"));
  const count = join(bin, "count");
  writeFileSync(count, "0");
  writeFileSync(
    join(bin, "gke-gcloud-auth-plugin"),
    `#!${process.execPath}
const { readFileSync, writeFileSync } = require("node:fs");
const token = Number(readFileSync(${JSON.stringify(count)}, "utf8")) + 1;
writeFileSync(${JSON.stringify(count)}, String(token));
const expirationTimestamp = new Date(Date.now() + ${lastsS} * 1000).toISOString();
const status = { token: "token-" + token, expirationTimestamp };
console.log(JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1beta1", kind: "ExecCredential", status }));
`,
  );
  chmodSync(join(bin, "gke-gcloud-auth-plugin"), 0o755);
  const path = process.env["PATH"];
  process.env["PATH"] = [bin, path].join(delimiter);
  onTestFinished(() => {
    process.env["PATH"] = path;
    rmSync(bin, { recursive: true, force: true });
  });
  return () => Number(readFileSync(count, "utf8"));
}

/** An API server without pods. @returns its cluster, and the tokens that it has seen */
async function cluster() {
  const seen: string[] = [];
  const { certPem, keyPem } = selfSigned("localhost");
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    seen.push(request.headers.authorization ?? "");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: {}, items: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    seen,
    cluster: {
      ...{ name: "dev", location: "here", server: `https://localhost:${port}` },
      ...{ caCertificate: Buffer.from(certPem).toString("base64"), credentialsCommand: "none" },
    },
  };
}

it("is renewed when it has expired: a sweep may be longer than a token lives", async () => {
  const runs = plugin(0);
  const { seen, cluster: one } = await cluster();
  const kube = await Kube.connect(one);
  for (let call = 0; call < 3; call++) await kube.pods("triton", "app=triton");
  expect(seen).toEqual(["Bearer token-1", "Bearer token-2", "Bearer token-3"]);
  expect(runs()).toBe(3);
});

it("is asked for once while it lasts", async () => {
  const runs = plugin(3600);
  const { seen, cluster: one } = await cluster();
  const kube = await Kube.connect(one);
  for (let call = 0; call < 3; call++) await kube.pods("triton", "app=triton");
  expect(new Set(seen)).toEqual(new Set(["Bearer token-1"]));
  expect(runs()).toBe(1);
});
