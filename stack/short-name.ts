/** A stack name as the start of account ids: lower-case letters, digits and hyphens, at most 20 characters. */
export function shortNameOf(stack: string): string {
  const cleaned = stack
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "");
  return `ts-${cleaned}`.slice(0, 20).replace(/-+$/, "");
}
