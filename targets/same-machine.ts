/** Whether a server runs on this machine, where load workers take CPU from what they measure. */
import { networkInterfaces } from "node:os";
import { splitHostPort } from "../loadgen/host-port";
import { ok, warning, type Check } from "../tuning/preflight/check";

/** Addresses host:port that lead to this machine, by their host: loopback, or an address of one of its network interfaces. */
export function addressesHere(
  addresses: readonly string[],
  interfaces: ReturnType<typeof networkInterfaces> = networkInterfaces(),
): string[] {
  const own = Object.values(interfaces).flatMap((list) => (list ?? []).map(({ address }) => address));
  return addresses.filter((address) => {
    const { host } = splitHostPort(address);
    return host === "localhost" || host === "::1" || /^127\./.test(host) || own.includes(host);
  });
}

/** The note for a result; null when the workers have a machine of their own. */
export function sharedMachineNote(addresses: readonly string[]): string | null {
  const here = addressesHere(addresses);
  if (here.length === 0) return null;
  return `the load workers run on the machine of ${here.join(", ")} (unless that is a forwarded port): they take CPU from what they measure`;
}

/** The check for preflight. */
export function placeCheck(addresses: readonly string[]): Check {
  const name = "place of workers";
  const note = sharedMachineNote(addresses);
  return note === null
    ? ok(name, "another machine than the server's")
    : warning(
        name,
        note,
        "run this command on another machine near the server, or pin server and command to cores of their own (taskset -c)",
      );
}
