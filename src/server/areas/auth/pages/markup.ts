import { escapeHtml } from "../../../../kernel/text/html.ts";

/** Text of a page that is HTML already. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | null | false | readonly Part[];

function textOf(part: Part): string {
  if (part === null || part === false) return "";
  if (part instanceof Html) return part.text;
  if (typeof part === "string" || typeof part === "number") return escapeHtml(String(part));
  return part.map(textOf).join("");
}

/** Makes HTML of a template: what is put in is escaped, unless it is HTML itself. null and false are nothing. */
export const html = (pieces: TemplateStringsArray, ...parts: readonly Part[]): Html =>
  new Html(pieces.reduce((made, piece, index) => made + textOf(parts[index - 1] ?? null) + piece));
