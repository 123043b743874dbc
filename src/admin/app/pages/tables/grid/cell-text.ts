import { isHeld } from "../../../../../kernel/json/text.ts";
import type { Field } from "../../../api/resources.ts";
import { timeText } from "../../../parts/format.ts";
import { parseJson } from "../../../parts/json-text.ts";

const SHOWN_CHARACTERS = 300;

/** A value in one line, as a cell shows it. */
export function cellText(value: unknown, field: Pick<Field, "type"> | undefined): string {
  if (value === null || value === undefined) return "";
  if (field?.type === "datetime" && typeof value === "string") return timeText(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** A value as it is typed in an editor. */
export function editText(value: unknown, { type }: Pick<Field, "type">): string {
  if (value === null || value === undefined) return "";
  return type === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/** What was typed, as a value of the field. An empty text is null where the field is no text. Errors: those of `parseJson`. */
export function parsed(text: string, field: Pick<Field, "type" | "required">): unknown {
  const { type, required } = field;
  if (type === "string" || type === "text") return text === "" && !required ? null : text;
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
