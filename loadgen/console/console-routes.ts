/** The console: its files, its events, its commands and its downloads. Plain HTTP, no build step. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FastifyInstance, FastifyReply } from "fastify";
import { LoadSpecError } from "../check-spec";
import type { Controller } from "../controller";
import { describeModel, ModelDescriptionError, readyModels } from "../describe-model";
import { toCsv, toHdrLog } from "../history/exports";
import type { HistoryStore } from "../history/history-store";
import { chartSeconds } from "../history/load-second";
import { describeLoad } from "../load-profile";
import { issuesOf } from "../spec-schema";
import { plainAddress } from "../targets";
import type { ConsoleHub } from "./console-hub";
import { changeSchema, loadRequestSchema, specOfRequest } from "./load-request";
import { toHtmlReport } from "./html-report";
import { shownRun } from "./shown-run";

export interface ConsoleOptions {
  readonly controller: Controller;
  readonly hub: ConsoleHub;
  readonly store: HistoryStore;
  /** Folder of images in the workers' file system. */
  readonly imageFolder: string;
}

const publicFolder = join(__dirname, "public");
const uplotFolder = join(require.resolve("uplot"), "..");

/** Files that need no token: they hold no secrets. */
const files: readonly { readonly path: string; readonly type: string; readonly file: string }[] = [
  { path: "/", type: "text/html; charset=utf-8", file: join(publicFolder, "index.html") },
  { path: "/console.css", type: "text/css; charset=utf-8", file: join(publicFolder, "console.css") },
  { path: "/console.js", type: "text/javascript; charset=utf-8", file: join(publicFolder, "console.js") },
  { path: "/form.js", type: "text/javascript; charset=utf-8", file: join(publicFolder, "form.js") },
  { path: "/charts.js", type: "text/javascript; charset=utf-8", file: join(publicFolder, "charts.js") },
  { path: "/uplot.js", type: "text/javascript; charset=utf-8", file: join(uplotFolder, "uPlot.iife.min.js") },
  { path: "/uplot.css", type: "text/css; charset=utf-8", file: join(uplotFolder, "uPlot.min.css") },
];

export const consolePaths: readonly string[] = files.map(({ path }) => path);

/** Only its own scripts, no framing by others, nothing sent elsewhere. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};

export function addConsole(app: FastifyInstance, options: ConsoleOptions): void {
  const { controller, hub, store } = options;
  for (const { path, type, file } of files) {
    const content = readFileSync(file);
    app.get(path, async (_, reply) => reply.headers(pageHeaders).type(type).send(content));
  }

  app.get("/console/targets", async () => ({
    targets: controller.limits.targets ?? [],
    maxRatePerS: Number.isFinite(controller.limits.maxRatePerS) ? controller.limits.maxRatePerS : null,
  }));
  app.get<{ Querystring: { target?: string } }>("/console/models", async (request, reply) => {
    const { target = "" } = request.query;
    if (!isTarget(controller, target)) return refuse(reply, 400, notTarget(target));
    try {
      return { models: await readyModels(plainAddress(target)) };
    } catch (error) {
      return refuse(reply, 502, (error as Error).message);
    }
  });

  app.get("/console/events", (request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    hub.add(reply.raw);
    request.raw.on("close", () => reply.raw.end());
  });

  app.post("/console/load", async (request, reply) => {
    const parsed = loadRequestSchema.safeParse(request.body);
    if (!parsed.success) return refuse(reply, 400, issuesOf(parsed.error.issues));
    const { target, model } = parsed.data;
    if (!isTarget(controller, target)) return refuse(reply, 400, notTarget(target));
    try {
      const described = await describeModel(plainAddress(target), { modelName: model || undefined });
      const spec = specOfRequest(parsed.data, described, options.imageFolder, controller.limits.maxInFlight);
      await hub.begin(spec);
      return await reply.code(202).send({ id: spec.id });
    } catch (error) {
      return refuse(reply, isUsersMistake(error) ? 400 : 409, (error as Error).message);
    }
  });
  app.post<{ Params: { id: string } }>("/console/load/:id/change", async (request, reply) => {
    const parsed = changeSchema.safeParse(request.body);
    if (!parsed.success) return refuse(reply, 400, issuesOf(parsed.error.issues));
    try {
      if (controller.change(request.params.id, parsed.data.shape)) return { changed: true };
    } catch (error) {
      return refuse(reply, 400, (error as Error).message);
    }
    return refuse(reply, 409, "this measurement is not under load");
  });
  app.post<{ Params: { id: string } }>("/console/load/:id/stop", async (request, reply) => {
    const { id } = request.params;
    if (controller.stop(id, "stopped at the console")) return { stopped: true };
    // Workers may need a minute to get ready, and nobody has to wait for that.
    if (controller.cancel(id, "stopped at the console before the load began")) return { stopped: true };
    return refuse(reply, 409, "this measurement is not under load");
  });

  app.get<{ Params: { id: string } }>("/console/runs/:id", async (request, reply) => {
    const run = store.get(request.params.id);
    if (run === undefined) return refuse(reply, 404, `no measurement ${request.params.id}`);
    return { run: shownRun(run), seconds: chartSeconds(store.seconds(run.id)) };
  });
  app.get<{ Params: { id: string; format: string } }>(
    "/console/runs/:id/download/:format",
    async (request, reply) => {
      const { id, format } = request.params;
      const run = store.get(id);
      if (run === undefined) return refuse(reply, 404, `no measurement ${id}`);
      const recorded = store.seconds(id);
      const seconds = recorded.map(({ second }) => second);
      const give = (type: string, text: string): FastifyReply =>
        reply
          .type(type)
          .header(
            "content-disposition",
            `attachment; filename="${id.replaceAll(/[^\w.-]+/g, "_")}.${format}"`,
          )
          .send(text);
      switch (format) {
        case "csv":
          return give("text/csv; charset=utf-8", toCsv(seconds));
        case "json":
          return give("application/json", JSON.stringify({ run, seconds }, null, 2));
        case "hlog":
          return give("text/plain; charset=utf-8", toHdrLog(recorded, describeLoad(run.spec.shape)));
        case "html":
          return give("text/html; charset=utf-8", toHtmlReport(run, seconds));
        default:
          return refuse(reply, 404, `there is no download ${format}: csv, json, hlog, html`);
      }
    },
  );
}

function refuse(reply: FastifyReply, code: number, error: string): FastifyReply {
  return reply.code(code).send({ error });
}

function isTarget(controller: Controller, target: string): boolean {
  return controller.limits.targets?.includes(target) ?? false;
}

function notTarget(target: string): string {
  return `${target || "nothing"} is none of this controller's targets: start it with --target HOST:PORT`;
}

function isUsersMistake(error: unknown): boolean {
  return error instanceof LoadSpecError || error instanceof ModelDescriptionError;
}
