import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/**
 * grpc-js 1.13.x and 1.14.0 fail calls with "Bandwidth exhausted or memory limit exceeded" while uploads are stalled (grpc-node#2948);
 * the conformance suite has the case, and this keeps the version from sliding back.
 */
it("@grpc/grpc-js is at least 1.14.3, pinned exactly", () => {
  for (const file of ["../../package.json", "../../loadgen/package.json"]) {
    const { dependencies } = JSON.parse(readFileSync(new URL(file, `file://${__dirname}/`), "utf8")) as {
      dependencies: Record<string, string>;
    };
    const match = /^(\d+)\.(\d+)\.(\d+)$/.exec(dependencies["@grpc/grpc-js"] ?? "");
    expect(match).not.toBeNull();
    const [major = 0, minor = 0, patch = 0] = match!.slice(1).map(Number);
    expect(major * 1e6 + minor * 1e3 + patch).toBeGreaterThanOrEqual(1_014_003);
  }
});
