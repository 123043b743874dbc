import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { Tokenizer, TokenParser } from "@streamparser/json";
import { CsvError, parse } from "csv-parse";
import { reasonOf } from "../../../kernel/errors.ts";
import { describeFault, isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { jsonTextFault } from "../../../kernel/json/text.ts";
import { type Cell, headFault, parseCell, parseText, writtenInstant } from "../../../kernel/transfer/csv-cells.ts";
import { CommandError } from "../errors.ts";
import { LINE_MAX_CHARACTERS } from "../limits.ts";
import { plural } from "../output.ts";
import type { FieldTypes } from "./client.ts";
import type { Format } from "./target.ts";

export interface SourceRecord {
  /** The record's place: `line 17`, or `element 17` of a JSON array; from 1. */
  place: string;
  record: JsonObject;
  /** The bytes of the file read so far. */
  bytesRead: number;
}

/** Ways of reading files that other programs have written. */
export interface Reading {
  /** Fields by the names in the file; an empty one drops the column. */
  map: ReadonlyMap<string, string>;
  /** Texts of cells that are null, unless they are quoted. */
  nulls: ReadonlySet<string>;
}

export const AS_WRITTEN: Reading = { map: new Map(), nulls: new Set() };

const BYTE_ORDER_MARK = /^\ufeff/;

/** Yields the records of a file in order. Errors: `CommandError` that names the place. */
export function readRecords(
  file: string,
  format: Format,
  types: FieldTypes | null,
  reading: Reading = AS_WRITTEN,
): AsyncGenerator<SourceRecord> {
  switch (format) {
    case "json":
      return renamed(readJsonArray(file), types, reading);
    case "ndjson":
      return renamed(readLines(file), types, reading);
    case "csv":
      return readCsv(file, types, reading);
    default:
      return format satisfies never;
  }
}

/** Gives members the names of fields, and instants the form that the server takes. */
async function* renamed(
  records: AsyncGenerator<SourceRecord>,
  types: FieldTypes | null,
  { map }: Reading,
): AsyncGenerator<SourceRecord> {
  for await (const source of records) {
    const members = Object.entries(source.record).flatMap(([member, value]): [string, JsonValue][] => {
      const name = map.get(member) ?? member;
      if (name === "") return [];
      const isInstant = typeof value === "string" && types?.get(name) === "datetime";
      return [[name, isInstant ? writtenInstant(value) : value]];
    });
    const record = Object.fromEntries(members);
    if (Object.keys(record).length < members.length)
      throw new CommandError(`${source.place}: two members are one field`);
    yield { ...source, record };
  }
}

function asRecord(value: unknown, place: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw new CommandError(`${place}: must be a JSON object`);
}

async function* readLines(file: string): AsyncGenerator<SourceRecord> {
  let lineNumber = 0;
  for await (const { line, bytesRead } of linesOf(file)) {
    lineNumber++;
    const text = lineNumber === 1 ? line.replace(BYTE_ORDER_MARK, "") : line;
    if (text.trim() === "") continue;
    const place = `line ${lineNumber}`;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (cause) {
      throw new CommandError(`${place}: is not valid JSON (${reasonOf(cause)})`, {
        cause,
      });
    }
    const fault = jsonTextFault(text, value);
    if (fault !== null) throw new CommandError(`${place}: ${describeFault("it", fault)}`);
    yield { place, record: asRecord(value, place), bytesRead };
  }
}

async function* linesOf(file: string): AsyncGenerator<{ line: string; bytesRead: number }> {
  const decoder = new TextDecoder();
  let rest = "";
  let bytesRead = 0;
  for await (const chunk of chunksOf(file)) {
    bytesRead += chunk.byteLength;
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_MAX_CHARACTERS)
      throw new CommandError(`${file} has a line of more than ${LINE_MAX_CHARACTERS} characters`);
    for (const line of lines) yield { line, bytesRead };
  }
  yield { line: rest + decoder.decode(), bytesRead };
}

/** Yields the file's chunks as they are consumed. Errors: another encoding, which would lose letters. */
async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const check = (...given: Parameters<TextDecoder["decode"]>): void => {
    try {
      decoder.decode(...given);
    } catch (cause) {
      throw new CommandError(`${file} is not encoded as UTF-8`, { cause });
    }
  };
  for await (const chunk of createReadStream(file) as AsyncIterable<Uint8Array>) {
    check(chunk, { stream: true });
    yield chunk;
  }
  check();
}

async function* readJsonArray(file: string): AsyncGenerator<SourceRecord> {
  let elements: unknown[] = [];
  const parser = createArrayParser((element) => elements.push(element));
  let count = 0;
  let bytesRead = 0;
  let isStarted = false;
  for await (const chunk of chunksOf(file)) {
    bytesRead += chunk.byteLength;
    if (!isStarted) {
      const start = new TextDecoder().decode(chunk).replace(BYTE_ORDER_MARK, "").trimStart();
      if (start !== "" && !start.startsWith("[")) throw new CommandError(`${file} must contain a JSON array`);
      isStarted = start !== "";
    }
    let failure: unknown = null;
    try {
      parser.write(isStarted && bytesRead === chunk.byteLength ? withoutMark(chunk) : chunk);
    } catch (cause) {
      failure = cause;
    }
    // The elements before the mistake are complete; the next one is broken.
    for (const element of elements) {
      count++;
      yield { place: `element ${count}`, record: asRecord(element, `element ${count}`), bytesRead };
    }
    elements = [];
    if (failure !== null) throw brokenArray(count + 1, failure);
  }
  if (!parser.isEnded) throw brokenArray(count + 1, new Error("the file ends before the array does"));
}

/** A tokenizer that refuses numbers that a double cannot hold, like the parser of lines. */
class ExactTokenizer extends Tokenizer {
  protected override parseNumber(text: string): number {
    const value = Number(text);
    const fault = jsonTextFault(text, value);
    if (fault !== null) throw new Error(describeFault(text, fault));
    return value;
  }
}

/** Creates the library's `JSONParser` with that tokenizer. */
function createArrayParser(onElement: (element: unknown) => void) {
  const tokenizer = new ExactTokenizer();
  const tokens = new TokenParser({ paths: ["$.*"], keepStack: false });
  tokenizer.onToken = (token) => tokens.write(token);
  tokens.onValue = ({ value }) => onElement(value);
  tokens.onError = (cause) => tokenizer.error(cause);
  tokens.onEnd = () => {
    if (!tokenizer.isEnded) tokenizer.end();
  };
  return {
    write: (chunk: Uint8Array) => tokenizer.write(chunk),
    get isEnded() {
      return tokenizer.isEnded && tokens.isEnded;
    },
  };
}

const brokenArray = (element: number, cause: unknown): CommandError =>
  new CommandError(`element ${element}: is not valid JSON (${reasonOf(cause)})`, {
    cause,
  });

const withoutMark = (chunk: Uint8Array): Uint8Array =>
  chunk[0] === 0xef && chunk[1] === 0xbb && chunk[2] === 0xbf ? chunk.subarray(3) : chunk;

async function* readCsv(file: string, types: FieldTypes | null, reading: Reading): AsyncGenerator<SourceRecord> {
  let columns: readonly string[] | null = null;
  let overcounted = 0;
  let bytesRead = 0;
  const parser = parse({
    bom: true,
    info: true,
    skip_empty_lines: true,
    // Checked below, where the line number is known.
    relax_column_count: true,
    // The text alone does not show whether it was quoted.
    cast: (text, { quoting }) => ({ text, isQuoted: quoting }),
  });
  const input = Readable.from(chunksOf(file), { objectMode: false });
  input.on("error", (cause) => parser.destroy(cause));
  input.on("data", (chunk: Uint8Array) => {
    bytesRead += chunk.byteLength;
  });
  try {
    for await (const item of input.pipe(parser)) {
      // `info` and `cast` above produce these forms.
      const { record: cells, info } = item as { record: Cell[]; info: { lines: number } };
      // The parser reports the line where a record ends, and counts a CRLF inside a cell as two lines.
      const text = cells.map((cell) => cell.text).join();
      overcounted += countOf(text, /\r\n/g);
      const place = `line ${info.lines - overcounted - countOf(text, /\r\n|\r|\n/g)}`;
      if (columns === null) columns = columnsOf(cells, file, reading);
      else yield { place, record: csvRecord(columns, cells, { types, place, reading }), bytesRead };
    }
  } catch (cause) {
    if (cause instanceof CsvError) throw new CommandError(`${file}: ${cause.message}`, { cause });
    throw cause;
  }
}

/** Returns the names of fields of the columns; an empty one is dropped. */
function columnsOf(cells: readonly Cell[], file: string, { map }: Reading): string[] {
  const names = cells.map((cell) => parseText(cell.text.trim()));
  const fault = headFault(names);
  if (fault !== null) throw new CommandError(`${file}: the first line ${fault}`);
  const missing = [...map.keys()].find((name) => !names.includes(name));
  if (missing !== undefined) throw new CommandError(`${file}: --map names "${missing}", which no column has`);
  const fields = names.map((name) => map.get(name) ?? name);
  const repeated = headFault(fields.filter((name) => name !== ""));
  if (repeated !== null) throw new CommandError(`${file}: with --map the first line ${repeated}`);
  return fields;
}

const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

function csvRecord(
  columns: readonly string[],
  cells: readonly Cell[],
  { types, place, reading: { nulls } }: { types: FieldTypes | null; place: string; reading: Reading },
): JsonObject {
  if (cells.length !== columns.length) {
    throw new CommandError(
      `${place}: has ${plural(cells.length, "cell")}, but the first line names ${plural(columns.length, "field")}`,
    );
  }
  const members: [name: string, value: JsonValue][] = [];
  for (const [index, name] of columns.entries()) {
    const cell = cells[index];
    if (cell === undefined || name === "") continue;
    try {
      const isNull = !cell.isQuoted && nulls.has(cell.text);
      const value = isNull ? null : parseCell(cell, types?.get(name));
      // The server generates these fields if the file has none.
      const isGenerated = value === null && (name === "id" || name === "createdAt" || name === "updatedAt");
      if (!isGenerated) members.push([name, value]);
    } catch {
      throw new CommandError(`${place}: ${name}: is not valid JSON`);
    }
  }
  // An assignment to `__proto__` would add no member, and the column would go unreported.
  return Object.fromEntries(members);
}
