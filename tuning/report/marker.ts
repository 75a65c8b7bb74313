/** Markers of the charts, as SVG. A trial's verdict is their filling: full, hollow, half. */
import { html, type Html } from "./html";
import type { Marker } from "./series";

const outlines: Readonly<Record<Exclude<Marker, "circle">, readonly (readonly [number, number])[]>> = {
  square: [
    [-0.86, -0.86],
    [0.86, -0.86],
    [0.86, 0.86],
    [-0.86, 0.86],
  ],
  diamond: [
    [0, -1.2],
    [1.2, 0],
    [0, 1.2],
    [-1.2, 0],
  ],
  triangle: [
    [0, -1.15],
    [1.1, 0.8],
    [-1.1, 0.8],
  ],
  wedge: [
    [0, 1.15],
    [1.1, -0.8],
    [-1.1, -0.8],
  ],
  hexagon: [
    [-0.5, -0.95],
    [0.5, -0.95],
    [1.05, 0],
    [0.5, 0.95],
    [-0.5, 0.95],
    [-1.05, 0],
  ],
};

/** A marker around (x, y). */
export function markerAt(marker: Marker, x: number, y: number, radius: number, className: string): Html {
  if (marker === "circle")
    return html`<circle class="${className}" cx="${px(x)}" cy="${px(y)}" r="${radius}" />`;
  const points = outlines[marker]
    .map(([dx, dy]) => `${px(x + dx * radius)},${px(y + dy * radius)}`)
    .join(" ");
  return html`<polygon class="${className}" points="${points}" />`;
}

/** Pixels to a tenth: enough, and half the file. */
export function px(value: number): string {
  return String(Math.round(value * 10) / 10);
}
