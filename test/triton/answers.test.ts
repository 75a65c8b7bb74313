import { describe, expect, it } from "vitest";
import { inferenceService } from "../../kserve/load-protos";
import { decodeClassifications, decodeInferResponse } from "../../kserve/wire";
import recordedGrpc from "../local-triton/fixtures/grpc-answers.json";
import { CASES, PHOTO, request } from "../local-triton/infer-cases";
import { inferSmall, rawClient, rawInfer, tensor, type TestModel } from "../local-triton/support";
import { startLocalSubject, startTritonSubject, subjects, type Subject } from "./harness/subjects";

/** Both servers with the same models. */
async function both(models: readonly TestModel[]): Promise<{ triton: Subject; local: Subject }> {
  const [triton, local] = await Promise.all([startTritonSubject(models), startLocalSubject(models)]);
  return { triton, local };
}

describe("answers to ModelInfer", () => {
  it("local-triton gives the same code and text as Triton to right and wrong requests, and so do the recorded answers", async () => {
    const { triton, local } = await both([PHOTO]);
    const clients = [rawClient(triton.grpcAddress), rawClient(local.grpcAddress)] as const;
    for (const [name, asked] of Object.entries(CASES)) {
      const [real, ours] = await Promise.all(clients.map((client) => rawInfer(client, asked)));
      const expected = { code: real!.code, message: real!.message };
      expect({ code: ours!.code, message: ours!.message }, name).toEqual(expected);
      const recorded = recordedGrpc.answers.find((answer) => answer.case === name)!;
      // The recorded server had a second model in its repository.
      if (!name.includes("badinit"))
        expect({ message: "", ...recorded }, name).toEqual({ case: name, ...expected });
    }
  });

  it("replies have the same form: name, version, id, output, shape, labels", async () => {
    const { triton, local } = await both([{}]);
    const classification = { parameters: { classification: { int64_param: 3 } } };
    const small = request(
      { shape: [2, 4, 4, 3] },
      { id: "r-7", raw_input_contents: [Buffer.concat([tensor(48, 1), tensor(48, 2)])] },
    );
    const asked = [
      small,
      { ...small, outputs: [] },
      { ...small, outputs: [{ name: "probabilities", ...classification }] },
    ];
    for (const question of asked) {
      const [real, ours] = await Promise.all(
        [triton, local].map(async ({ grpcAddress }) => {
          const { reply } = await rawInfer(rawClient(grpcAddress), question);
          return decodeInferResponse(reply!);
        }),
      );
      const form = ({ raw, ...rest }: NonNullable<typeof real>) => ({
        ...rest,
        bytes: raw.map((part) => (rest.outputs[0]!.datatype === "BYTES" ? "labels" : part.length)),
      });
      expect(form(ours!)).toEqual(form(real!));
    }
  });
});

describe.each(subjects)("%s", (_name, start) => {
  it("gives every image its own class, the same alone and in a batch", async () => {
    const { client } = await start([{ classes: 1000 }]);
    const ask = (seeds: readonly number[]) =>
      client.infer({
        modelName: "sim",
        inputName: "input",
        datatype: "FP32",
        shape: [seeds.length, 4, 4, 3],
        raw: Buffer.concat(seeds.map((seed) => tensor(48, seed))),
        outputName: "probabilities",
        classCount: 1,
      });
    const seeds = [1, 2, 3, 4, 5];
    const together = decodeClassifications((await ask(seeds)).raw[0]!);
    expect(new Set(together.map(({ classIndex }) => classIndex)).size).toBeGreaterThan(3);
    for (const [index, seed] of seeds.entries()) {
      const [alone] = decodeClassifications((await ask([seed])).raw[0]!);
      expect(alone).toEqual(together[index]);
      expect(alone!.label).toBe(`CLASS ${alone!.classIndex}`);
    }
  });

  it("answers the control methods as recorded", async () => {
    const { client, grpcAddress } = await start([PHOTO]);
    expect(await client.serverLive()).toBe(true);
    expect(await client.serverReady()).toBe(true);
    expect(await client.health()).toBe("SERVING");
    expect(await client.modelReady("nope")).toBe(false);
    const raw = rawClient(grpcAddress);
    const service = inferenceService();
    const ask = (path: string, message: Buffer) =>
      new Promise<string>((resolve) => {
        const same = (bytes: Buffer): Buffer => bytes;
        raw.makeUnaryRequest(path, same, same, message, (error) => resolve(error?.details ?? ""));
      });
    const unknown = { name: "nope", version: "" };
    const answers: Record<string, string> = {};
    for (const method of ["ModelMetadata", "ModelConfig", "ModelStatistics"] as const) {
      answers[`${method} unknown`] = await ask(
        service[method].path,
        service[method].requestSerialize(unknown),
      );
    }
    for (const [name, message] of Object.entries(answers)) {
      expect(message).toBe(recordedGrpc.answers.find((answer) => answer.case === name)!.message);
    }
  });
});

describe("documents over HTTP", () => {
  const PATHS = [
    "/v2/health/live",
    "/v2/health/ready",
    "/v2/models/sim/ready",
    "/v2/models/nope/ready",
    "/v2/models/sim",
    "/v2/models/nope",
    "/v2/models/sim/config",
    "/v2/nothing/here",
  ];

  it("have the same status, content type and body", async () => {
    const { triton, local } = await both([PHOTO]);
    for (const path of PATHS) {
      const [real, ours] = await Promise.all([triton.http(path), local.http(path)]);
      expect(parsed(ours), path).toEqual(parsed(real));
    }
    const [real, ours] = await Promise.all(
      [triton, local].map(({ http }) => http("/v2/repository/index", { method: "POST" })),
    );
    expect(parsed(ours!)).toEqual(parsed(real!));
  });

  it("statistics have the same keys", async () => {
    const { triton, local } = await both([{}]);
    const keys = await Promise.all(
      [triton, local].map(async ({ client, http }) => {
        await inferSmall(client);
        return keysOf(JSON.parse((await http("/v2/models/sim/stats")).body));
      }),
    );
    expect(keys[1]).toEqual(keys[0]);
  });

  function parsed({ status, contentType, body }: Awaited<ReturnType<Subject["http"]>>) {
    try {
      return { status, contentType, body: JSON.parse(body) as unknown };
    } catch {
      return { status, contentType, body };
    }
  }

  /** Every key path of a JSON document, array indices left out. */
  function keysOf(value: unknown, path = ""): string[] {
    if (Array.isArray(value)) return [...new Set(value.flatMap((element) => keysOf(element, `${path}[]`)))];
    if (typeof value !== "object" || value === null) return [path];
    return Object.entries(value)
      .flatMap(([key, child]) => keysOf(child, `${path}.${key}`))
      .sort();
  }
});
