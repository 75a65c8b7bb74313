/** How much an object holds: entries of all objects, arrays, maps and sets that are reached from it, and eighths of the bytes of buffers. */
export function graphSize(root: object): number {
  const seen = new Set<object>([root]);
  const left: object[] = [root];
  let entries = 0;
  const visit = (value: unknown): void => {
    entries++;
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    left.push(value);
  };
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (ArrayBuffer.isView(next)) {
      entries += Math.ceil(next.byteLength / 8);
      continue;
    }
    if (next instanceof Map || next instanceof Set)
      for (const [key, value] of next.entries() as Iterable<[unknown, unknown]>) {
        visit(key);
        visit(value);
      }
    for (const key of Reflect.ownKeys(next)) {
      const property = Object.getOwnPropertyDescriptor(next, key);
      if (property !== undefined && "value" in property) visit(property.value);
    }
  }
  return entries;
}
