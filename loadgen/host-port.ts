/** Splits `host:port`; an IPv6 host stands in brackets. @throws RangeError naming the address */
export function splitHostPort(address: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(address);
  const port = Number(match?.[3]);
  if (match === null || port < 1 || port > 65_535)
    throw new RangeError(`"${address}" is no host:port; write e.g. 127.0.0.1:8001 or [::1]:8001`);
  return { host: (match[1] ?? match[2])!, port };
}
