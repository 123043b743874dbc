import { isHeld } from "../../../../kernel/json/text.ts";
import type { Field } from "../../../api/resources.ts";
import { timeText } from "../../../parts/format.tsx";
import { parseJson } from "../../../parts/json.tsx";

const SHOWN_CHARACTERS = 300;

/** Of values that may have a million characters each, and are shown again with every row that is scrolled. */
const jsonTexts = new WeakMap<object, string>();

function jsonText(value: object): string {
  const text = jsonTexts.get(value) ?? shortened(JSON.stringify(value));
  jsonTexts.set(value, text);
  return text;
}

/** Without half a character at its end. */
function shortened(text: string): string {
  if (text.length <= SHOWN_CHARACTERS) return text;
  return `${text.slice(0, SHOWN_CHARACTERS).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** A value in one line, as a cell shows it. */
export function cellText(value: unknown, field: Pick<Field, "type"> | undefined): string {
  if (value === null || value === undefined) return "";
  if (field?.type === "datetime" && typeof value === "string") return timeText(value);
  return typeof value === "object" ? jsonText(value) : shortened(String(value));
}

const BREAKS = /\r\n?|\n/g;

/** A value as it is typed in an editor, where every line break is `\n`. */
export function editText(value: unknown, field: Pick<Field, "type" | "enum">): string {
  if (value === null || value === undefined) return "";
  if (field.type === "json") return JSON.stringify(value, null, 2);
  // One of several texts is chosen as it is.
  return field.enum === undefined ? String(value).replace(BREAKS, "\n") : String(value);
}

/** A text that was typed in place of another one, whose line breaks it has: editors have others. */
function withBreaksOf(before: unknown, typed: string): string {
  const breaks = typeof before === "string" ? (before.match(BREAKS) ?? []) : [];
  const last = breaks.at(-1) ?? "\n";
  return typed.split("\n").reduce((text, line, index) => text + (breaks[index - 1] ?? last) + line);
}

/**
 * What was typed in place of `before`, as a value of the field. An empty text is null where the field is no text. Errors: those
 * of `parseJson`.
 */
export function parsed(text: string, field: Pick<Field, "type" | "required" | "enum">, before: unknown): unknown {
  const { type, required } = field;
  if (type === "string" || type === "text") {
    if (text === "" && !required) return null;
    return field.enum === undefined ? withBreaksOf(before, text) : text;
  }
  if (text.trim() === "") return null;
  if (type === "json") return parseJson(text);
  if (type === "boolean") return text === "true";
  // What is no number, or would become another one, stays a text: the server says what is wrong with it.
  if (type === "integer" || type === "number") return isNumber(text) ? Number(text) : text;
  return text;
}

/** Whether it is a number that stays the one that was typed. */
export function isNumber(text: string): boolean {
  const [, digits] = /^\s*[-+]?(\d+)\s*$/.exec(text) ?? [];
  return Number.isFinite(Number(text)) && (digits === undefined || isHeld(digits));
}

/** Around what a search has found: no text of a record has these characters by accident, as it may have tags. */
export const MARKS = { pre: "\ue000", post: "\ue001" } as const;

const MARKED_CHARACTERS = 300;
/** Characters before the first match. */
const LEAD_CHARACTERS = 24;

/** A text with what a search has found in it, from shortly before the first match. */
export function Marked({ text }: { text: string }) {
  const first = text.indexOf(MARKS.pre);
  const from = first > LEAD_CHARACTERS * 2 ? first - LEAD_CHARACTERS : 0;
  const shown = text.slice(from, from + MARKED_CHARACTERS);
  const parts = shown.split(MARKS.pre).map((part, index) => {
    const [found = "", rest] = part.split(MARKS.post);
    if (index === 0) return part;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one text
      <span key={index}>
        <mark>{found}</mark>
        {rest}
      </span>
    );
  });
  return (
    <>
      {from > 0 ? "…" : null}
      {parts}
    </>
  );
}
