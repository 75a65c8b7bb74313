import { metricsText, type MetricsInput } from "../metrics/exposition";
import { errorReply, type HttpRoute } from "./http-server";

/** GET /metrics. */
export function metricsRoute(input: () => MetricsInput): HttpRoute {
  return ({ method, path }) => {
    if (path !== "/metrics") return errorReply(404, "Not Found", "text/plain");
    if (method !== "GET") return errorReply(405, "Method Not Allowed", "text/plain");
    return { status: 200, contentType: "text/plain; charset=utf-8", body: metricsText(input()) };
  };
}
