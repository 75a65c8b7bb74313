/** Stack files, image digests, image content and outputs. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseConfig } from "../../stack/config";
import { imageContentTag, imageExclusions, imageSources } from "../../stack/image-content";
import { parseImageName, resolveDigest } from "../../stack/image-registry-client";
import { parseStackOutputs } from "../../stack/outputs";
import { readStackFile, writeStackKey } from "../../stack/stack-file";
import { stackImages } from "../../stack/stack-images";
import { shortNameOf } from "../../stack/short-name";

const project = join(__dirname, "../..");
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stack-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("stack file", () => {
  const write = (text: string) => writeFileSync(join(folder, "Pulumi.x.yaml"), text);

  it("is read as Pulumi hands it over: text, and lists as JSON", () => {
    write(
      'config:\n  gcp:project: other\n  triton-slo-stack:replicas: "2"\n  triton-slo-stack:zones:\n    - us-central1-a\n',
    );
    expect(readStackFile(folder, "x")).toEqual({ replicas: "2", zones: '["us-central1-a"]' });
  });

  it("keeps comments and other keys when one is set", () => {
    write("# cheap\nconfig:\n  a:b: c # why\n  triton-slo-stack:variant: tftrt_fp16\n");
    writeStackKey(folder, "x", "variant", { artefact: "original", maxBatchSize: 8 });
    writeStackKey(folder, "x", "replicas", 2);
    expect(readFileSync(join(folder, "Pulumi.x.yaml"), "utf8")).toBe(
      '# cheap\nconfig:\n  a:b: c # why\n  triton-slo-stack:variant:\n    artefact: original\n    maxBatchSize: 8\n  triton-slo-stack:replicas: "2"\n',
    );
    expect(JSON.parse(readStackFile(folder, "x").variant ?? "")).toEqual({
      artefact: "original",
      maxBatchSize: 8,
    });
  });

  it("can be empty", () => {
    write("");
    expect(readStackFile(folder, "x")).toEqual({});
    writeStackKey(folder, "x", "asleep", true);
    expect(readStackFile(folder, "x")).toEqual({ asleep: "true" });
  });

  it.each([
    ["missing", undefined, /does not exist.*pulumi stack init x/],
    ["not YAML", "config: [", /is not YAML/],
    ["encrypted", "config:\n  triton-slo-stack:project:\n    secure: AAAB\n", /is encrypted/],
  ])("that is %s is named", (_what, text, message) => {
    if (text !== undefined) write(text);
    expect(() => readStackFile(folder, "x")).toThrow(message);
  });
});

describe("digests", () => {
  const digest = `sha256:${"ab".repeat(32)}`;
  let server: Server;
  let registry: string;
  let asked: string[];
  beforeEach(async () => {
    asked = [];
    server = createServer((request, response) => {
      const url = request.url ?? "";
      asked.push(`${request.method} ${url}`);
      if (url.startsWith("/token")) return response.end(JSON.stringify({ token: "t-1" }));
      if (url.includes("/missing/")) return response.writeHead(404).end();
      if (url.includes("/silent/")) return response.end();
      if (url.includes("/closed/"))
        return response.writeHead(401, { "www-authenticate": "Basic realm=x" }).end();
      if (url.includes("/private/") && request.headers.authorization !== "Bearer t-1") {
        const realm = `http://${registry}/token`;
        return response
          .writeHead(401, {
            "www-authenticate": `Bearer realm="${realm}",service="s",scope="repository:private:pull"`,
          })
          .end();
      }
      return response.writeHead(200, { "docker-content-digest": digest }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    registry = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => new Promise((resolve) => server.close(resolve)));

  it("of a public tag", async () => {
    expect(await resolveDigest(`${registry}/a/b:1.0`, "http")).toBe(digest);
    expect(asked).toEqual(["HEAD /v2/a/b/manifests/1.0"]);
  });

  it("of a registry that hands out a token first", async () => {
    expect(await resolveDigest(`${registry}/private/b:1.0`, "http")).toBe(digest);
    expect(asked[1]).toBe("GET /token?service=s&scope=repository%3Aprivate%3Apull");
  });

  it.each([
    ["missing/b:1", /answered 404/],
    ["silent/b:1", /answered 200 without a digest/],
    ["closed/b:1", /wants a login/],
  ])("%s is explained", async (image, message) => {
    await expect(resolveDigest(`${registry}/${image}`, "http")).rejects.toThrow(message);
  });

  it("of a registry that is not there", async () => {
    await expect(resolveDigest("127.0.0.1:1/a:1", "http")).rejects.toThrow(
      /127\.0\.0\.1:1\/a:1: .* cannot be reached/,
    );
  });

  it.each(["ubuntu", "a/b", "nvcr.io/a", "nvcr.io/a:", "nvcr.io/a@sha256:00"])(
    "of %s cannot be asked for",
    (image) => {
      expect(() => parseImageName(image)).toThrow(/is not HOST\/PATH:TAG/);
    },
  );

  it("are asked for every image that the stack pulls, and none other", () => {
    const all = stackImages(parseConfig({ project: "my-project" }));
    expect(all.map((image) => parseImageName(image).repository)).toEqual([
      "nvidia/tritonserver",
      "nvidia/tensorflow",
      "prometheus/prometheus",
      "grafana/grafana",
      "pause",
    ]);
    const few = {
      project: "my-project",
      conversionVm: "false",
      monitoring: "false",
      driverMode: "gke-default",
      tritonImage: `x.io/t@${digest}`,
    };
    expect(stackImages(parseConfig(few))).toEqual([]);
  });
});

describe("content of the load generator's image", () => {
  beforeEach(() => {
    for (const source of imageSources) {
      if (source.includes(".")) writeFileSync(join(folder, source), "{}");
      else mkdirSync(join(folder, source, "inner"), { recursive: true });
    }
    writeFileSync(join(folder, "loadgen/inner/a.ts"), "1");
  });

  it("decides the tag", () => {
    const tag = imageContentTag(folder);
    expect(imageContentTag(folder)).toBe(tag);
    writeFileSync(join(folder, "loadgen/inner/a.ts"), "2");
    const changed = imageContentTag(folder);
    expect(changed).not.toBe(tag);
    writeFileSync(join(folder, "loadgen/inner/a.ts"), "1");
    writeFileSync(join(folder, "loadgen/inner/b.ts"), "");
    expect([tag, changed]).not.toContain(imageContentTag(folder));
  });

  it("does not depend on what is left out, or on other folders", () => {
    const tag = imageContentTag(folder);
    mkdirSync(join(folder, "model-repo/convert"));
    writeFileSync(join(folder, "model-repo/convert/x.py"), "1");
    writeFileSync(join(folder, "README.md"), "1");
    expect(imageContentTag(folder)).toBe(tag);
  });

  it("is what the Dockerfile gets to see and copies", () => {
    const ignore = readFileSync(join(project, "loadgen/Dockerfile.dockerignore"), "utf8")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(ignore).toEqual(["*", ...imageSources.map((source) => `!${source}`), ...imageExclusions]);
    const dockerfile = readFileSync(join(project, "loadgen/Dockerfile"), "utf8");
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap((match) =>
      (match[1] ?? "").split(" "),
    );
    for (const source of copied) {
      expect(
        imageSources.some((known) => source === known || source.startsWith(`${known}/`)),
        source,
      ).toBe(true);
    }
  });

  it("runs without root, on an exact base image", () => {
    const dockerfile = readFileSync(join(project, "loadgen/Dockerfile"), "utf8");
    expect(dockerfile).toMatch(/^USER 10001:10001$/m);
    // Nor anything that installs: the last stage takes the base image's package managers away before it runs.
    const lastStage = dockerfile.slice(dockerfile.lastIndexOf("\nFROM "));
    expect(lastStage).toMatch(
      /^RUN rm -rf \/usr\/local\/lib\/node_modules .*\\\n.*bin\/npm .*bin\/npx .*bin\/yarn /m,
    );
    expect(lastStage).not.toMatch(/npm (ci|install)/);
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map((match) => match[1]);
    expect(new Set(bases).size).toBe(1);
    expect(bases[0]).toMatch(/^node:\d+\.\d+\.\d+-[a-z]+-slim$/);
  });
});

describe("outputs", () => {
  it("of another version are refused with what is missing", () => {
    expect(() => parseStackOutputs({})).toThrow(/run pulumi up first[^]*schemaVersion[^]*triton/);
    expect(() => parseStackOutputs(undefined)).toThrow(/run pulumi up first/);
  });
});

it.each([
  ["dev", "ts-dev"],
  ["Feature/New_Model", "ts-feature-new-model"],
  ["a-very-long-stack-name-indeed", "ts-a-very-long-stack"],
  ["--x--", "ts-x"],
])("stack %s makes accounts of %s", (stack, name) => {
  expect(shortNameOf(stack)).toBe(name);
  expect(`${name}-converter`).toMatch(/^[a-z][a-z0-9-]{4,28}[a-z0-9]$/);
});
