import { isJsonObject } from "../../../kernel/json/json.ts";

// Formatted source text: lists stay on one line where they fit, and are broken into lines where they do not.

/** Source text: a text, parts behind each other, or a list of items within brackets. */
export type Code = string | CodeList | readonly Code[];

export interface CodeList {
  open: string;
  close: string;
  items: readonly CodeItem[];
  /** Whether each item has a line of its own, however short they are. */
  isBroken?: boolean;
  /** The sign behind each item on a line of its own; a comma by default. */
  end?: string;
}

export interface CodeItem {
  code: Code;
  /** Lines above the item. */
  comments?: readonly string[];
}

/** A member of an object; `comments` are lines above it. */
export interface Member {
  name: string;
  value: Code;
  comments?: readonly string[];
}

const WIDTH = 120;
const INDENT = "  ";
/** Ends of lines in JavaScript: behind one of these, the text of a source would be code. */
const LINE_ENDS = /[\n\r\u2028\u2029]+/g;
const NAME = /^[A-Za-z_$][\w$]*$/;

export const quoted = (text: string): string => JSON.stringify(text);

/** Returns a member's name as it stands before its colon. */
export const memberName = (name: string): string => (NAME.test(name) ? name : quoted(name));

export function objectCode(members: readonly Member[], { isBroken = false } = {}): Code {
  if (members.length === 0) return "{}";
  const items = members.map(({ name, value, comments = [] }) => ({ code: [`${memberName(name)}: `, value], comments }));
  return { open: "{", close: "}", items, isBroken };
}

export const arrayCode = (items: readonly Code[]): Code => ({
  open: "[",
  close: "]",
  items: items.map((code) => ({ code })),
});

export const callCode = (name: string, values: readonly Code[]): Code => ({
  open: `${name}(`,
  close: ")",
  items: values.map((code) => ({ code })),
});

const SEPARATED_FROM = 10_000;

/** Returns a number with separators, as in 5_242_880. */
export const numberCode = (value: number): string =>
  Number.isSafeInteger(value) && Math.abs(value) >= SEPARATED_FROM
    ? value.toLocaleString("en-US").replaceAll(",", "_")
    : String(value);

/** Returns the source text of a JSON value. */
export function valueCode(value: unknown): Code {
  if (Array.isArray(value)) return arrayCode(value.map(valueCode));
  if (typeof value === "number") return numberCode(value);
  if (!isJsonObject(value)) return JSON.stringify(value);
  return objectCode(Object.entries(value).map(([name, member]) => ({ name, value: valueCode(member) })));
}

/** Returns the text on one line; null: it needs several. */
function flat(code: Code): string | null {
  if (typeof code === "string") return code;
  if (isParts(code)) return joined(code.map(flat), "");
  if (code.isBroken === true || code.items.some(({ comments = [] }) => comments.length > 0)) return null;
  const inside = joined(
    code.items.map((item) => flat(item.code)),
    ", ",
  );
  if (inside === null) return null;
  return code.open === "{" ? `{ ${inside} }` : `${code.open}${inside}${code.close}`;
}

const isParts = (code: Exclude<Code, string>): code is readonly Code[] => Array.isArray(code);

const joined = (parts: readonly (string | null)[], separator: string): string | null =>
  parts.includes(null) ? null : parts.join(separator);

/** Formats source text. `depth`: the levels of indentation; `column`: the characters before it on its line. */
export function render(code: Code, depth = 0, column = 0): string {
  const line = flat(code);
  if (line !== null && column + line.length < WIDTH && !line.includes("\n")) return line;
  if (typeof code === "string") return code;
  if (isParts(code)) {
    let text = "";
    for (const part of code) {
      const before = text.slice(text.lastIndexOf("\n") + 1).length;
      text += render(part, depth, text.includes("\n") ? before : column + before);
    }
    return text;
  }
  const indent = INDENT.repeat(depth + 1);
  const lines = code.items.flatMap(({ code: item, comments = [] }) => [
    ...comments.map((comment) => `${indent}// ${comment.replace(LINE_ENDS, " ")}`),
    `${indent}${render(item, depth + 1, indent.length)}${code.end ?? ","}`,
  ]);
  return [code.open, ...lines, `${INDENT.repeat(depth)}${code.close}`].join("\n");
}
