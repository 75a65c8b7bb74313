/**
 * The controller's HTTP API: how the tune command runs measurements from outside the cluster, and the console. Measurements are fetched by
 * id, so a broken connection loses none; finished ones are known after a restart, too.
 */
import fastify, { type FastifyInstance, type FastifyReply } from "fastify";
import { LoadSpecError } from "./check-spec";
import { addConsole, consolePaths } from "./console/console-routes";
import type { ConsoleHub } from "./console/console-hub";
import type { Controller } from "./controller";
import type { ControllerMetrics } from "./controller-metrics";
import type { HistoryStore } from "./history/history-store";
import { addHttpGuard } from "./http-guard";
import type { LoadProgress, LoadResult, LoadSpec } from "./load-spec";
import { issuesOf, loadSpecSchema } from "./spec-schema";

/** State of one measurement as `GET /measurements/:id` answers it. */
export type MeasurementState =
  | { readonly state: "running"; readonly progress: LoadProgress | null }
  | { readonly state: "finished"; readonly result: LoadResult }
  | { readonly state: "failed"; readonly error: string };

export interface ControllerApiOptions {
  readonly controller: Controller;
  /** The controller's observer. */
  readonly metrics: ControllerMetrics;
  /** Secret that every call must bring as `Authorization: Bearer TOKEN`. */
  readonly token: string;
  /** Names that callers may use for this host: others are refused, so that a web page cannot reach it through DNS. */
  readonly allowedHosts?: readonly string[];
  readonly hub: ConsoleHub;
  readonly store: HistoryStore;
  /** Folder of images in the workers' file system, for loads that the console starts. */
  readonly imageFolder: string;
}

/** A spec with the known answers of 128 images is about 20 kB; one with a million recorded arrivals is much larger. */
const MAX_BODY_BYTES = 24 * 1024 * 1024;
/** A request has to be here whole after this, milliseconds; 24 MB through a port-forward take some. */
const REQUEST_TIMEOUT_MS = 60_000;
/** States that are kept; the history has the results of earlier measurements. */
const KEPT_STATES = 200;

/** What the framework refuses, or a route throws. */
type FailedCall = Pick<Error, "message"> & { readonly statusCode?: number };

/** Every answer that is none says why in the same place: callers show that. */
function refused({ message, statusCode = 500 }: FailedCall, reply: FastifyReply): FastifyReply {
  return reply.code(statusCode).send({ error: message });
}

/** The server, not yet listening. */
export function controllerApi(options: ControllerApiOptions): FastifyInstance {
  const { controller, token, metrics, store } = options;
  const measurements = new Map<string, MeasurementState>();
  const aborts = new Map<string, AbortController>();
  const stateOf = (id: string): MeasurementState | undefined => {
    const result = store.get(id)?.result;
    return measurements.get(id) ?? (result ? { state: "finished", result } : undefined);
  };
  const keep = (id: string, state: MeasurementState): void => {
    measurements.set(id, state);
    for (const [old, { state: name }] of measurements) {
      if (measurements.size <= KEPT_STATES) return;
      if (name !== "running") measurements.delete(old);
    }
  };
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    frameworkErrors: (error, _, reply) => void refused(error, reply as unknown as FastifyReply),
  });
  app.setErrorHandler((error: FailedCall, _, reply) => refused(error, reply));
  app.setNotFoundHandler((request, reply) =>
    reply.code(404).send({ error: `there is no ${request.method} ${request.url.replace(/\?.*$/, "")}` }),
  );

  const probes = ["/healthz", "/metrics"];
  addHttpGuard(app, {
    token,
    allowedHosts: options.allowedHosts ?? [],
    openPaths: new Set([...probes, ...consolePaths]),
    anyHostPaths: new Set(probes),
  });
  addConsole(app, options);

  // The clock is the one that measurements are dated with.
  app.get("/healthz", async () => ({
    ok: true,
    workers: controller.workers().length,
    unixMs: Date.now(),
  }));
  app.get("/metrics", async (_request, reply) =>
    reply.type("text/plain; version=0.0.4").send(metrics.exposition(controller.workers())),
  );
  app.get("/workers", async () => controller.workers());

  app.put<{ Params: { id: string }; Body: LoadSpec }>("/measurements/:id", async (request, reply) => {
    const { id } = request.params;
    const parsed = loadSpecSchema.safeParse(request.body);
    if (!parsed.success)
      return reply.code(400).send({ error: `no load spec: ${issuesOf(parsed.error.issues)}` });
    if (request.body.id !== id) return reply.code(400).send({ error: `the spec's id is not ${id}` });
    const known = stateOf(id);
    if (known !== undefined && known.state !== "failed") return reply.code(200).send(known);
    // Its successor takes it.
    if (controller.isEnding) return reply.code(503).send({ error: "the load controller is ending" });
    const abort = new AbortController();
    aborts.set(id, abort);
    keep(id, { state: "running", progress: null });
    controller
      .run(request.body, (progress) => keep(id, { state: "running", progress }), abort.signal)
      .then(
        (result) => keep(id, { state: "finished", result }),
        (error: unknown) => {
          const prefix = error instanceof LoadSpecError ? "bad spec: " : "";
          keep(id, {
            state: "failed",
            error: prefix + (error instanceof Error ? error.message : String(error)),
          });
        },
      )
      .finally(() => aborts.delete(id));
    return reply.code(202).send(measurements.get(id));
  });

  app.get<{ Params: { id: string } }>("/measurements/:id", async (request, reply) => {
    const known = stateOf(request.params.id);
    // A measurement that a restart of the controller ended is not known: its caller then asks for it anew.
    return known ?? reply.code(404).send({ error: `no measurement ${request.params.id}` });
  });

  app.delete<{ Params: { id: string } }>("/measurements/:id", async (request) => {
    aborts.get(request.params.id)?.abort(new Error("stopped by the caller"));
    return { stopped: aborts.has(request.params.id) };
  });
  return app;
}
