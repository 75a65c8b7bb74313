/** Figures as people read them. One place, so that report and terminal agree. */

/** Between a figure and its unit: they stay on one line. */
const gap = "\u00a0";

/** Shown where there is no value. */
export const noValue = "–";

/** Requests per second: whole from 100 on, then with more digits. */
export function formatRate(ratePerS: number | null): string {
  if (ratePerS === null || !Number.isFinite(ratePerS)) return noValue;
  const digits = ratePerS >= 100 ? 0 : ratePerS >= 10 ? 1 : 2;
  return withDigits(ratePerS, digits);
}

/** Milliseconds: whole from 100 on, one digit from 10 on. */
export function formatMs(valueMs: number | null): string {
  if (valueMs === null || !Number.isFinite(valueMs)) return noValue;
  return `${withDigits(valueMs, valueMs >= 100 ? 0 : valueMs >= 10 ? 1 : 2)}${gap}ms`;
}

/** A share of 1 as a percentage. */
export function formatShare(share: number | null, digits = 0): string {
  return share === null ? noValue : `${withDigits(share * 100, digits)}${gap}%`;
}

/** A relative difference with its sign, e.g. +4 %, −1.2 %. */
export function formatGain(gain: number): string {
  const percent = gain * 100;
  const text = withDigits(Math.abs(percent), Math.abs(percent) < 10 ? 1 : 0);
  if (Number(text) === 0) return `±0${gap}%`;
  return `${percent < 0 ? "−" : "+"}${text}${gap}%`;
}

/** Mean batch: one digit. */
export function formatBatch(meanBatch: number | null): string {
  return meanBatch === null ? noValue : withDigits(meanBatch, 1);
}

/** Whole numbers with thousands separated. */
export function formatCount(count: number): string {
  return withDigits(count, 0);
}

/** A factor, e.g. 3.2×. */
export function formatFactor(factor: number): string {
  return `${withDigits(factor, factor < 10 && !Number.isInteger(factor) ? 1 : 0)}×`;
}

/** A span of time: 42 s, 5 min 12 s, 1 h 03 min. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${pad(whole % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
}

/** SLO in its usual short form, e.g. p95 ≤ 100 ms, p99.9 ≤ 50 ms. */
export function formatSlo(slo: { quantile: number; boundMs: number }): string {
  return `${formatQuantile(slo.quantile)} ≤ ${plain(slo.boundMs)}${gap}ms`;
}

/** A quantile as a percentile, e.g. p95, p99.9. */
export function formatQuantile(quantile: number): string {
  return `p${plain(quantile * 100)}`;
}

/** A number without rounding noise and without separators. */
export function plain(value: number): string {
  return String(Number(value.toPrecision(10)));
}

/** US dollars. */
export function formatUsd(amount: number, digits = 2): string {
  return `$${withDigits(amount, digits)}`;
}

/** Date and time in UTC, to the minute. */
export function formatInstant(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 16)} UTC`;
}

/** Prose in which no line breaks between a figure and its unit. */
export function keepUnits(text: string): string {
  return text.replaceAll(/(?<=\d) (?=(%|ms|s|kB|MB|MB\/s|Gbit\/s)(?![a-z]))/g, gap);
}

function withDigits(value: number, digits: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
