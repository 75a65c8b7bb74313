/**
 * HTML by tagged template: every value that is put in is escaped unless it is HTML made here. A variant may be called
 * `<script>` and still only be shown.
 */

/** Text that is HTML already. Only `html` and `trustedHtml` make it. */
export class Html {
  constructor(readonly text: string) {}
  toString(): string {
    return this.text;
  }
}

/** What may stand in a template. Null, undefined and false give nothing; lists are joined without a separator. */
export type Fragment = Html | string | number | null | undefined | false | readonly Fragment[];

/** Escapes a text for element content and for attribute values in quotes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;");
}

/** Template tag: html`<td>${anything}</td>`. Attribute values must be in quotes. */
export function html(literals: TemplateStringsArray, ...values: readonly Fragment[]): Html {
  let text = literals[0] ?? "";
  for (const [index, value] of values.entries()) text += render(value) + (literals[index + 1] ?? "");
  return new Html(text);
}

/** Marks a text of this program (never of a result or manifest) as HTML. */
export function trustedHtml(text: string): Html {
  return new Html(text);
}

function render(value: Fragment): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Html) return value.text;
  if (typeof value === "object") return value.map(render).join("");
  return escapeHtml(String(value));
}
