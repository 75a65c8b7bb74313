import type { networkInterfaces } from "node:os";
import { expect, it } from "vitest";
import { connectionReason } from "../../targets/until-ready";
import { addressesHere, placeCheck } from "../../targets/same-machine";

const interfaces = {
  eth0: [{ address: "10.1.2.3" }, { address: "fe80::1" }],
  down: undefined,
} as unknown as ReturnType<typeof networkInterfaces>;

it("knows this machine by loopback and by the addresses of its interfaces", () => {
  const here = [
    "localhost:8001",
    "127.0.0.1:8001",
    "127.1.2.3:1",
    "[::1]:8001",
    "10.1.2.3:8001",
    "[fe80::1]:8001",
  ];
  expect(addressesHere([...here, "10.1.2.4:8001", "gpu:8001", "[fe80::2]:8001"], interfaces)).toEqual(here);
});

it("workers beside the server are a warning with a way out", () => {
  expect(placeCheck(["gpu.example:8001"]).state).toBe("ok");
  const check = placeCheck(["127.0.0.1:8001"]);
  expect(check.state).toBe("warning");
  expect(check.found).toMatch(/on the machine of 127\.0\.0\.1:8001 .*take CPU from what they measure/);
  expect(check.fix).toMatch(
    /another machine near the server, or pin server and command to cores of their own/,
  );
});

it.each([
  [
    "No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:9. Resolution note: ",
    "connect ECONNREFUSED 127.0.0.1:9",
  ],
  [
    "No connection established. Last error: Protocol error (2026-11-30T07:46:23.399Z). Resolution note: ",
    "Protocol error",
  ],
  [
    "Name resolution failed for target dns:nohost:18001",
    "Name resolution failed for target dns:nohost:18001",
  ],
])("a connection's failure in few words: %s", (details, reason) => {
  expect(connectionReason(details)).toBe(reason);
});
