import type { FieldType } from "../../config/types.ts";
import type { JsonValue } from "../../kernel/json.ts";
import { isHeld } from "../../kernel/json-text.ts";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/**
 * What a spreadsheet takes for a formula: a text that begins so is written with an apostrophe before it, which spreadsheets
 * read as "this is text". One that begins with apostrophes and then so gets one more, so that each text is read as it was.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const ESCAPED_FORMULA = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

export interface Cell {
  text: string;
  /** Whether it stood in quotes, which is how an empty text differs from nothing. */
  isQuoted: boolean;
}

/**
 * A cell as a value of its field's declared type; without one it stays text. An empty cell is null. What does not fit its
 * type is handed on as it stands, so that the server's validation names it. Errors: `SyntaxError` for broken JSON, which
 * as text would be a value of its own.
 */
export function parseCell({ text, isQuoted }: Cell, type: FieldType | undefined): JsonValue {
  const isText = type === undefined || type === "string" || type === "text";
  if (text === "") return isQuoted && isText ? "" : null;
  switch (type) {
    case "number":
    case "integer":
      return NUMBER.test(text.trim()) && isExact(text.trim()) ? Number(text) : text;
    case "boolean":
      return parseBoolean(text);
    case "json":
      return JSON.parse(text);
    default:
      return parseText(text);
  }
}

/** A text, or the name of a field, without the apostrophe that keeps a spreadsheet from taking it for a formula. */
export const parseText = (text: string): string => (ESCAPED_FORMULA.test(text) ? text.slice(1) : text);

/** Whether a double holds it, if it is an integer. */
const isExact = (text: string): boolean => !/^[+-]?\d{16,}$/.test(text) || isHeld(text.replace(/^[+-]?0*/, ""));

function parseBoolean(text: string): JsonValue {
  const word = text.trim().toLowerCase();
  if (word === "true" || word === "1") return true;
  return word === "false" || word === "0" ? false : text;
}

/** The other way. null is an empty cell, an empty text a quoted one. Numbers are no formulas, negative ones included. */
export function formatCell(value: JsonValue | undefined, type: FieldType | undefined): string {
  if (value === null || value === undefined) return "";
  const isText = typeof value === "string" && type !== "json";
  const plain = isText ? value : JSON.stringify(value);
  const text = isText && FORMULA.test(plain) ? `'${plain}` : plain;
  return text === "" || /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const formatRow = (cells: readonly string[]): string => `${cells.join(",")}\r\n`;
