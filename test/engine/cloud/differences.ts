/** Where two sets of inputs differ, and which of these places replace the resource. */
import { UNKNOWN } from "./check";

export interface Difference {
  path: string;
  kind: "add" | "delete" | "update";
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const absent = (value: unknown): boolean => value === undefined || value === null;

/** Leaves that differ. Keys that start with `__` are Pulumi's own. */
export function differences(before: unknown, after: unknown, path = ""): Difference[] {
  if (absent(before) && absent(after)) return [];
  if (absent(before)) return [{ path, kind: "add" }];
  if (absent(after)) return [{ path, kind: "delete" }];
  if (isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      (key) => !key.startsWith("__"),
    );
    return keys.flatMap((key) => differences(before[key], after[key], path ? `${path}.${key}` : key));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) =>
      differences(before[index], after[index], `${path}[${index}]`),
    ).flat();
  }
  return before === after && before !== UNKNOWN ? [] : [{ path, kind: "update" }];
}

/** Whether a path lies at or below a pattern; `*` and `[*]` stand for one step. */
export function covers(pattern: string, path: string): boolean {
  const steps = (text: string): string[] => text.replaceAll("[", ".[").split(".").filter(Boolean);
  const wanted = steps(pattern);
  const given = steps(path);
  return (
    wanted.length <= given.length &&
    wanted.every((step, index) => step === "*" || step === "[*]" || step === given[index])
  );
}
