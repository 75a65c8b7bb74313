/** An IPv4 range. */
export interface Cidr {
  /** First address as a number. */
  readonly first: number;
  /** Number of addresses. */
  readonly size: number;
}

/** Reads `A.B.C.D/N` whose address is the first of its range; undefined for anything else. */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})\/(\d{1,2})$/.exec(text);
  if (!match) return undefined;
  const [a = 0, b = 0, c = 0, d = 0, bits = 0] = match.slice(1).map(Number);
  if ([a, b, c, d].some((byte) => byte > 255) || bits > 32) return undefined;
  const first = ((a * 256 + b) * 256 + c) * 256 + d;
  const size = 2 ** (32 - bits);
  return first % size === 0 ? { first, size } : undefined;
}

export function overlaps(a: Cidr, b: Cidr): boolean {
  return a.first < b.first + b.size && b.first < a.first + a.size;
}

/** Whether the range `outer` contains `inner`; false if either is no range. */
export function contains(outer: string, inner: string): boolean {
  const a = parseCidr(outer);
  const b = parseCidr(inner);
  return a !== undefined && b !== undefined && a.first <= b.first && a.first + a.size >= b.first + b.size;
}
