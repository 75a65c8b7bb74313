/** Small line pictures for the docs, in the reader's light or dark colours. Pure. */

export interface Axis {
  readonly label: string;
  readonly low: number;
  readonly high: number;
  readonly ticks: readonly number[];
  /** Default: linear. */
  readonly log?: boolean;
  readonly format?: (value: number) => string;
}

export type Mark =
  | {
      readonly kind: "line";
      readonly points: readonly Point[];
      readonly colour: number;
      readonly dashed?: boolean;
    }
  | {
      readonly kind: "dot";
      readonly at: Point;
      readonly colour: number;
      readonly text?: string;
      readonly hollow?: boolean;
    }
  | {
      readonly kind: "range";
      readonly x: number;
      readonly low: number;
      readonly high: number;
      readonly colour: number;
    }
  | { readonly kind: "band"; readonly from: number; readonly to: number; readonly colour: number }
  | {
      readonly kind: "text";
      readonly at: Point;
      readonly text: string;
      readonly anchor?: "start" | "middle" | "end";
    };
export type Point = readonly [number, number];

const [width, height] = [720, 360];
const frame = { left: 74, right: 20, top: 34, bottom: 50 };
/** Readable on white and on dark grey; told apart by the colour-blind (Okabe and Ito). */
const colours = ["#0072b2", "#d55e00", "#009e73", "#888888", "#cc79a7"];

export function picture(title: string, x: Axis, y: Axis, marks: readonly Mark[]): string {
  const place = (axis: Axis, value: number): number => {
    const of = (v: number): number => (axis.log ? Math.log(v) : v);
    return (of(value) - of(axis.low)) / (of(axis.high) - of(axis.low));
  };
  const px = (value: number): number =>
    round(frame.left + place(x, value) * (width - frame.left - frame.right));
  const py = (value: number): number =>
    round(height - frame.bottom - place(y, value) * (height - frame.top - frame.bottom));
  const format = (axis: Axis, value: number): string => axis.format?.(value) ?? String(value);
  const bottom = height - frame.bottom;
  const grid = [
    ...y.ticks.map(
      (tick) =>
        `<line x1="${frame.left}" y1="${py(tick)}" x2="${width - frame.right}" y2="${py(tick)}" class="grid"/>` +
        `<text x="${frame.left - 8}" y="${py(tick) + 4}" text-anchor="end">${escape(format(y, tick))}</text>`,
    ),
    ...x.ticks.map(
      (tick) =>
        `<line x1="${px(tick)}" y1="${bottom}" x2="${px(tick)}" y2="${bottom + 5}" class="axis"/>` +
        `<text x="${px(tick)}" y="${bottom + 20}" text-anchor="middle">${escape(format(x, tick))}</text>`,
    ),
    `<line x1="${frame.left}" y1="${bottom}" x2="${width - frame.right}" y2="${bottom}" class="axis"/>`,
    `<text x="${(frame.left + width - frame.right) / 2}" y="${height - 8}" text-anchor="middle">${escape(x.label)}</text>`,
    `<text transform="translate(16 ${(frame.top + bottom) / 2}) rotate(-90)" text-anchor="middle">${escape(y.label)}</text>`,
    `<text x="${frame.left}" y="18" class="title">${escape(title)}</text>`,
  ];
  const drawn = marks.map((mark) => {
    switch (mark.kind) {
      case "line": {
        const path = mark.points.map(([vx, vy], i) => `${i === 0 ? "M" : "L"}${px(vx)} ${py(vy)}`).join("");
        return `<path d="${path}" fill="none" stroke="${colours[mark.colour]}" stroke-width="2"${mark.dashed ? ' stroke-dasharray="6 5"' : ""}/>`;
      }
      case "dot": {
        const [cx, cy] = [px(mark.at[0]), py(mark.at[1])];
        const fill = mark.hollow ? 'fill="none" stroke-width="2"' : `fill="${colours[mark.colour]}"`;
        const label =
          mark.text === undefined ? "" : `<text x="${cx + 9}" y="${cy + 4}">${escape(mark.text)}</text>`;
        return `<circle cx="${cx}" cy="${cy}" r="5" ${fill} stroke="${colours[mark.colour]}"/>${label}`;
      }
      case "range":
        return (
          `<path d="M${px(mark.x) - 6} ${py(mark.high)}h12M${px(mark.x)} ${py(mark.high)}V${py(mark.low)}M${px(mark.x) - 6} ${py(mark.low)}h12" ` +
          `fill="none" stroke="${colours[mark.colour]}" stroke-width="2"/>`
        );
      case "band":
        return `<rect x="${px(mark.from)}" y="${frame.top}" width="${round(px(mark.to) - px(mark.from))}" height="${bottom - frame.top}" fill="${colours[mark.colour]}" opacity="0.2"/>`;
      case "text":
        return `<text x="${px(mark.at[0])}" y="${py(mark.at[1])}" text-anchor="${mark.anchor ?? "start"}">${escape(mark.text)}</text>`;
    }
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(title)}">\n` +
    "<style>text{font:13px system-ui,sans-serif;fill:#333}.title{font-weight:600}.grid{stroke:#8884}.axis{stroke:#888}" +
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>\n" +
    `${[...grid, ...drawn].join("\n")}\n</svg>\n`
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
