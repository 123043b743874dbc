import type { RecordFile } from "../../../../client/index.ts";
import { isHeld } from "../../../../kernel/json/text.ts";
import type { Field } from "../../../api/resources.ts";
import { timeText } from "../../../parts/format.tsx";
import { parseJson } from "../../../parts/json.tsx";
import { plainName } from "../../../parts/name.tsx";

const SHOWN_CHARACTERS = 300;

/** Cache of JSON texts: values may have a million characters each, and are shown again with every row that is scrolled. */
const jsonTexts = new WeakMap<object, string>();

function jsonText(value: object): string {
  const text = jsonTexts.get(value) ?? shortened(JSON.stringify(value));
  jsonTexts.set(value, text);
  return text;
}

/** Shortens a text without splitting its last character. */
export function shortened(text: string): string {
  if (text.length <= SHOWN_CHARACTERS) return text;
  return `${text.slice(0, SHOWN_CHARACTERS).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** Returns the files of a field's value. */
export function filesIn(value: unknown): RecordFile[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  // Values of such a field are the server's.
  return all.filter((one) => typeof one === "object" && one !== null && "id" in one) as RecordFile[];
}

/** Formats a value in one line, for a cell. */
export function cellText(value: unknown, field: Pick<Field, "type"> | undefined): string {
  if (value === null || value === undefined) return "";
  if (field?.type === "file")
    return shortened(
      filesIn(value)
        .map(({ name }) => plainName(name))
        .join(", "),
    );
  if (field?.type === "references" && Array.isArray(value)) return shortened(value.join(", "));
  if (field?.type === "datetime" && typeof value === "string") return timeText(value);
  return typeof value === "object" ? jsonText(value) : shortened(String(value));
}

/** Whether values of the field are edited as JSON: any value, a point, or the array of several references. */
export const isJsonText = ({ type }: Pick<Field, "type">): boolean =>
  ["json", "geo", "references", "file"].includes(type);

const BREAKS = /\r\n?|\n/g;

/** Formats a value for an editor, where every line break is `\n`. */
export function editText(value: unknown, field: Pick<Field, "type" | "enum">): string {
  if (value === null || value === undefined) return "";
  if (isJsonText(field)) return JSON.stringify(value, null, 2);
  // Options are chosen unchanged.
  return field.enum === undefined ? String(value).replace(BREAKS, "\n") : String(value);
}

/** Restores the line breaks of the previous text, which editors normalize. */
function withBreaksOf(before: unknown, typed: string): string {
  const breaks = typeof before === "string" ? (before.match(BREAKS) ?? []) : [];
  const last = breaks.at(-1) ?? "\n";
  return typed.split("\n").reduce((text, line, index) => text + (breaks[index - 1] ?? last) + line);
}

/**
 * Parses text typed in place of `before`, as a value of the field. An empty text is null if the field is not a text. Errors:
 * those of `parseJson`.
 */
export function parsed(text: string, field: Pick<Field, "type" | "required" | "enum">, before: unknown): unknown {
  const { type, required } = field;
  if (type === "string" || type === "text") {
    if (text === "" && !required) return null;
    return field.enum === undefined ? withBreaksOf(before, text) : text;
  }
  if (text.trim() === "") return null;
  if (isJsonText(field)) return parseJson(text);
  if (type === "boolean") return text === "true";
  // Text that is not a number, or that a number cannot represent exactly, stays text: the server reports the problem.
  if (type === "integer" || type === "number") return isNumber(text) ? Number(text) : text;
  return text;
}

/** Returns whether the text is a number that is represented exactly. */
export function isNumber(text: string): boolean {
  const [, digits] = /^\s*[-+]?(\d+)\s*$/.exec(text) ?? [];
  return Number.isFinite(Number(text)) && (digits === undefined || isHeld(digits));
}

/** Marks around search matches, which may be untrusted HTML: private-use characters do not occur in records by accident. */
export const MARKS = { pre: "\ue000", post: "\ue001" } as const;

const MARKED_CHARACTERS = 300;
/** Number of characters before the first match. */
const LEAD_CHARACTERS = 24;

/** Text with highlighted search matches, from shortly before the first one. */
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
