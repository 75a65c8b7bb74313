/** Text in columns of fixed width. Pure. */
import { printable } from "./ansi";

export interface TextColumn {
  readonly title: string;
  /** Right-aligned, for numbers. */
  readonly right: boolean;
}

/** Head and rows as lines, every cell printable, columns two spaces apart. */
export function textTable(columns: readonly TextColumn[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map((column) => column.title), ...rows].map((row) => row.map(printable));
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => row[index]?.length ?? 0)));
  const align = (cell: string, index: number) =>
    columns[index]?.right ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0);
  return cells.map((row) => row.map(align).join("  ").trimEnd());
}
