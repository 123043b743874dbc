import { describeFault, type JsonValue } from "../json/json.ts";
import { isHeld, jsonTextFault } from "../json/text.ts";
import type { FieldType } from "../records/field-types.ts";

// Values as cells of CSV files, for the command line and for the dashboard.

export type { FieldType };

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

/**
 * The beginnings of a spreadsheet's formulas. Such a text is written with an apostrophe before it, which spreadsheets read as
 * "this is text". A text that begins with apostrophes and then like a formula gets one more, so that each text survives.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
const ESCAPED_FORMULA = /^'+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

export interface Cell {
  text: string;
  /** An empty text is quoted, null is not. */
  isQuoted: boolean;
}

/**
 * Parses a cell as a value of its field's declared type; without a type it stays text. An empty cell is null. A cell that does not
 * fit its type stays text, so that the server's validation reports it. Errors: `SyntaxError` for broken JSON, which would be a
 * valid text, and for JSON with a number that a double cannot represent.
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
    case "geo":
      return parseJson(text);
    case "json":
    case "references":
      return parseJsonOrArray(text, type);
    case "file":
      // A path below the folder with the files of an import.
      return /^\s*[[{]/.test(text) ? parseJson(text) : parseText(text);
    case "date":
      return parseText(text).replace(MIDNIGHT, "");
    case "datetime":
      return writtenInstant(parseText(text));
    case "string":
    case "text":
    case undefined:
      return parseText(text);
    default:
      return type satisfies never;
  }
}

function parseJson(text: string): JsonValue {
  const value: JsonValue = JSON.parse(text);
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw new SyntaxError(describeFault("it", fault));
  return value;
}

/** Returns a text, or the name of a field, without the apostrophe before a formula. */
export const parseText = (text: string): string => (ESCAPED_FORMULA.test(text) ? text.slice(1) : text);

/** Reports whether a double represents the number: false for an integer that it cannot. */
const isExact = (text: string): boolean => !/^[+-]?\d{16,}$/.test(text) || isHeld(text.replace(/^[+-]?0*/, ""));

function parseBoolean(text: string): JsonValue {
  const word = text.trim().toLowerCase();
  if (word === "true" || word === "t" || word === "1") return true;
  return word === "false" || word === "f" || word === "0" ? false : text;
}

/** The time of a day that databases write behind a date. */
const MIDNIGHT = /(?<=^\d{4}-\d\d-\d\d)[ T]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::?00)?)?$/;
const SQL_INSTANT = /^(\d{4}-\d\d-\d\d [\d:.]+)([+-]\d\d)?$/;

/** Returns an instant as databases write it in a form with an offset: `2024-05-06 04:00:00+00`, or without one, which is UTC. */
export function writtenInstant(text: string): string {
  const [, time, zone] = SQL_INSTANT.exec(text) ?? [];
  return time === undefined ? text : `${time}${zone === undefined ? "Z" : `${zone}:00`}`;
}

function parseJsonOrArray(text: string, type: "json" | "references"): JsonValue {
  const isArray = /^\{[\s\S]*\}$/.test(text);
  if (type === "references" && isArray) return sqlArray(text, false);
  try {
    return parseJson(text);
  } catch (cause) {
    const list = isArray ? sqlArray(text, true) : null;
    if (list === null) throw cause;
    return list;
  }
}

/**
 * Parses an array as PostgreSQL writes it: `{a,"b c",NULL}`. Numbers of JSON are numbers, unless all elements are texts. Errors:
 * SyntaxError for other texts.
 */
function sqlArray(text: string, mayHaveNumbers: boolean): JsonValue {
  let at = 0;
  const wrong = (): never => {
    throw new SyntaxError("it is no array");
  };
  const element = (): JsonValue => {
    ELEMENT.lastIndex = at;
    const [found = wrong(), quoted] = ELEMENT.exec(text) ?? [];
    at += found.length;
    if (quoted !== undefined) return quoted.replace(/\\([\s\S])/g, "$1");
    if (found === "NULL") return null;
    return mayHaveNumbers && NUMBER.test(found) && isExact(found) ? Number(found) : found;
  };
  const list = (depth: number): JsonValue => {
    if (depth > ARRAY_DEPTH_MAX) return wrong();
    const items: JsonValue[] = [];
    at += 1;
    while (text[at] !== "}") {
      if (items.length > 0 && text[at++] !== ",") return wrong();
      items.push(text[at] === "{" ? list(depth + 1) : element());
    }
    at += 1;
    return items;
  };
  const found = list(1);
  return at === text.length ? found : wrong();
}

/** PostgreSQL's own bound of dimensions. */
const ARRAY_DEPTH_MAX = 6;
const ELEMENT = /"((?:[^"\\]|\\[\s\S])*)"|[^{}",\\\s][^{}",\\]*/y;

/** Formats a value as a cell; null is an empty cell. Numbers are not formulas, negative ones included. */
export function formatCell(value: JsonValue | undefined, type: FieldType | undefined): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== "string" || type === "json") return JSON.stringify(value);
  return FORMULA.test(value) ? `'${value}` : value;
}

/** Explains what is wrong with the names of the first line; null: nothing. */
export function headFault(names: readonly string[]): string | null {
  const seen = new Set<string>();
  const repeated = names.find((name) => seen.size === seen.add(name).size);
  if (repeated !== undefined) return `names the field ${repeated} twice`;
  // Spreadsheets of many languages write other separators: the line would be one field, and its value the whole line.
  const separator = names.length === 1 ? /[;\t]/.exec(names[0] ?? "")?.[0] : undefined;
  if (separator === undefined) return null;
  return `has ${separator === ";" ? "semicolons" : "tabs"} between its names: save the file with commas`;
}

/**
 * Options of `csv-stringify` for rows. An empty text is quoted, which distinguishes it from null; a text with spaces at the ends is
 * quoted because some readers remove them otherwise.
 */
export const CSV_STYLE = { record_delimiter: "windows", quoted_match: /^$|^\s|\s$/ } as const;
