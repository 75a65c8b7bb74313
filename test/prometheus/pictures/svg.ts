/** Colours and text of the pictures. */
export const palette = {
  page: "#f4f5f5",
  panel: "#ffffff",
  border: "#dcdee2",
  text: "#24292e",
  faint: "#6e7681",
  grid: "#ebedf0",
  limit: "#d1242f",
  trial: "#3274d9",
} as const;

/** Colours that stay apart for colour-blind eyes (after Okabe and Ito, 2008). */
export const lineColors = [
  "#0072b2",
  "#e69f00",
  "#009e73",
  "#cc79a7",
  "#56b4e9",
  "#d55e00",
  "#7f7f7f",
  "#b3a100",
];

export function escapeXml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** A value as a panel's axis or legend shows it. */
export function valueText(value: number, unit: string): string {
  switch (unit) {
    case "percentunit":
      return `${short(100 * value)} %`;
    case "bytes":
      return bytesText(value);
    case "ms":
      return value >= 1000 ? `${short(value / 1000)} s` : `${short(value)} ms`;
    case "reqps":
      return `${short(value)}/s`;
    case "MBs":
      return `${short(value)} MB/s`;
    case "watt":
      return `${short(value)} W`;
    case "currencyUSD":
      return `$${short(value)}`;
    default:
      return short(value);
  }
}

function bytesText(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(value) / 10));
  return `${short(value / 2 ** (10 * power))} ${units[power]}`;
}

function short(value: number): string {
  if (value === 0) return "0";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** Round numbers (of bytes: in the unit that they are shown in) from 0 to at least `top`, four or so. */
export function ticksTo(top: number, unit = ""): number[] {
  if (!(top > 0)) return [0, 1];
  if (unit === "bytes" && top >= 1024) {
    const scale = 1024 ** Math.floor(Math.log2(top) / 10);
    return ticksTo(top / scale).map((tick) => tick * scale);
  }
  const rough = top / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough)!;
  const count = Math.ceil(top / step - 1e-9);
  return Array.from({ length: count + 1 }, (_unused, index) => index * step);
}
