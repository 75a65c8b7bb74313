import { describe, expect, it } from "vitest";
import answers from "./fixtures/http-answers.json";
import documents from "./fixtures/model-documents.json";
import { startServer, type TestModel } from "./support";

/** The recorded model. */
const RECORDED: TestModel = {
  dims: [224, 224, 3],
  classes: 1000,
  config: {
    instance_group: [{ count: 2, kind: "KIND_GPU" }],
    dynamic_batching: { preferred_batch_size: [64], max_queue_delay_microseconds: 20_000 },
  },
};

/** How the recorded cases were asked. */
const REQUESTS: Readonly<Record<string, readonly [path: string, method: "GET" | "POST"]>> = {
  "http: unknown model": ["/v2/models/nope/infer", "POST"],
  "http: unknown version": ["/v2/models/sim/versions/9/infer", "POST"],
  "http: GET infer": ["/v2/models/sim/infer", "GET"],
  "http: unknown path": ["/v2/nope", "GET"],
  "http: root": ["/", "GET"],
  "http: ready unknown model": ["/v2/models/nope/ready", "GET"],
  "http: metadata unknown model": ["/v2/models/nope", "GET"],
  "http: config unknown model": ["/v2/models/nope/config", "GET"],
  "http: stats unknown model": ["/v2/models/nope/stats", "GET"],
  "http: load unknown": ["/v2/repository/models/nope/load", "POST"],
  "http: unload unknown": ["/v2/repository/models/nope/unload", "POST"],
};

describe("HTTP endpoint", () => {
  it("answers health", async () => {
    const { http } = await startServer([{}]);
    for (const path of [
      "/v2/health/live",
      "/v2/health/ready",
      "/v2/models/sim/ready",
      "/v2/models/sim/versions/1/ready",
    ]) {
      expect(await http(path), path).toMatchObject({ status: 200, body: "" });
    }
  });

  it("gives the recorded answers to wrong requests", async () => {
    const { http } = await startServer([{}]);
    for (const answer of answers.answers) {
      if (!answer.case.startsWith("http:")) continue;
      const asked = REQUESTS[answer.case];
      expect(asked, answer.case).toBeDefined();
      const got = await http(asked![0], { method: asked![1] });
      expect(got, answer.case).toEqual({
        status: answer.http,
        contentType: answer.contentType,
        body: answer.httpBody,
      });
    }
  });

  it("prints the configuration as recorded, byte for byte but for the GPU", async () => {
    const { http } = await startServer([RECORDED]);
    const config = JSON.parse((await http("/v2/models/sim/config")).body) as Record<string, unknown>;
    const expected = {
      ...documents.httpConfig,
      instance_group: [{ ...documents.httpConfig.instance_group[0]!, kind: "KIND_GPU", gpus: [0] }],
      parameters: config["parameters"],
    };
    expect(JSON.stringify(config)).toBe(JSON.stringify(expected));
  });

  it("prints metadata and an idle model's statistics as recorded", async () => {
    const { http } = await startServer([RECORDED]);
    expect((await http("/v2/models/sim")).body).toBe(JSON.stringify(documents.httpMetadata));
    const { body } = await http("/v2/models/sim/stats");
    const shape = (value: unknown): unknown =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.entries(value).map(([key, child]) => [key, shape(child)])
        : typeof value;
    const [mine] = (JSON.parse(body) as typeof documents.httpStatistics).model_stats;
    const [recorded] = documents.httpStatistics.model_stats;
    expect(shape({ ...mine, batch_stats: null })).toEqual(shape({ ...recorded, batch_stats: null }));
    expect((await http("/v2/models/stats")).body).toBe(body);
  });

  it("announces Triton's name and version, and only extensions that it has", async () => {
    const { http, client } = await startServer([]);
    const server = JSON.parse((await http("/v2")).body) as typeof documents.grpcServerMetadata;
    expect(server).toMatchObject({ name: "triton", version: documents.grpcServerMetadata.version });
    for (const extension of server.extensions) {
      expect(documents.grpcServerMetadata.extensions).toContain(extension);
    }
    expect(await client.serverMetadata()).toEqual(server);
  });

  it("says that inference is offered over gRPC only", async () => {
    const { http } = await startServer([{}]);
    const answer = await http("/v2/models/sim/infer", { method: "POST", body: "{}" });
    expect(answer.status).toBe(501);
    expect(answer.body).toMatch(/use ModelInfer of the gRPC endpoint/);
  });

  it("answers bad JSON and bad parameters with what is wrong", async () => {
    const { http } = await startServer([{}]);
    const load = (body: string) => http("/v2/repository/models/sim/load", { method: "POST", body });
    expect(await load("{")).toMatchObject({ status: 500 });
    expect((await load('{"parameters":{"file:1/x":"AA=="}}')).body).toMatch(/file:1\/x' is not supported/);
    expect((await http("/v2/models/%E0%A4%A/config")).status).toBe(404);
  });
});
