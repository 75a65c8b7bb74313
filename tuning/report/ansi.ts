/** Terminal text: colours where they are wanted, and nothing that a name from outside could do to the terminal. */

export type Style = "bold" | "dim" | "green" | "red" | "yellow";

const codes: Readonly<Record<Style, number>> = { bold: 1, dim: 2, green: 32, red: 31, yellow: 33 };

/** Applies a style, or not. */
export type Painter = (style: Style, text: string) => string;

export function painter(colour: boolean): Painter {
  return (style, text) => (colour ? `\u001b[${codes[style]}m${text}\u001b[0m` : text);
}

/**
 * Whether to use colours on a stream: on a terminal, unless NO_COLOR is set (https://no-color.org) or TERM is `dumb`.
 */
export function wantsColour(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !environment.NO_COLOR && environment.TERM !== "dumb";
}

/** Text from outside without control characters: an escape sequence in a name must not reach the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, "?").replaceAll("\u00a0", " ");
}
