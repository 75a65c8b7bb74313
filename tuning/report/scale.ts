/** Axes: from values to pixels, with round tick values. Pure. */

export interface Tick {
  readonly value: number;
  readonly label: string;
}

export interface Scale {
  /** Pixel of a value; outside the domain it lies outside the axis. */
  readonly at: (value: number) => number;
  readonly max: number;
  readonly ticks: readonly Tick[];
}

/** Linear axis from 0 to `max` over [from, to] pixels. */
export function linearScale(
  max: number,
  from: number,
  to: number,
  tickCount: number,
  format: (value: number) => string,
): Scale {
  const top = max > 0 ? max : 1;
  const step = roundStep(top / tickCount);
  const ticks: Tick[] = [];
  for (let i = 0; i * step <= top * (1 + 1e-9); i++) ticks.push({ value: i * step, label: format(i * step) });
  return { at: (value) => from + ((to - from) * value) / top, max: top, ticks };
}

/** Axis of powers of two from 1 to at least `max`, for batch sizes. */
export function powerOfTwoScale(max: number, from: number, to: number): Scale {
  const exponent = Math.max(1, Math.ceil(Math.log2(max)));
  const ticks = Array.from({ length: exponent + 1 }, (_, i) => ({ value: 2 ** i, label: String(2 ** i) }));
  return {
    at: (value) => from + ((to - from) * Math.log2(Math.max(value, 1))) / exponent,
    max: 2 ** exponent,
    ticks,
  };
}

/** Smallest of 1, 2, 2.5, 5 times a power of ten that is >= `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 2.5, 5, 10].find((candidate) => candidate * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Round number a little above `value`, as the end of an axis. */
export function roundUp(value: number): number {
  if (value <= 0) return 1;
  const step = roundStep(value / 12);
  return Math.ceil(value / step) * step;
}
