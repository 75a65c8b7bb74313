import { GrpcStatusCode } from "../../kserve/status";
import { StatusError } from "../grpc/status";

/**
 * Reads a request's version as Triton does: empty and -1 mean the newest (null); otherwise the number at the text's start.
 * @throws StatusError INVALID_ARGUMENT
 */
export function parseVersion(text: string): number | null {
  if (text === "") return null;
  const match = /^\s*([+-]?\d+)/.exec(text);
  if (match === null) {
    throw new StatusError(
      GrpcStatusCode.INVALID_ARGUMENT,
      `failed to get model version from specified version string '${text}' (details: stol), ` +
        "version should be an integral value > 0",
    );
  }
  const version = Number(match[1]);
  return version === -1 ? null : version;
}
