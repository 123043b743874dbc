import { parse } from "csv-parse/browser/esm/sync";
import { describeFault, type JsonObject, type JsonValue } from "../../../../kernel/json/json.ts";
import { jsonTextFault } from "../../../../kernel/json/text.ts";
import { type Cell, headFault, parseCell, parseText } from "../../../../kernel/transfer/csv-cells.ts";
import type { TableSchema } from "../../../api/resources.ts";

/** Limit of a JSON array, which is read as a whole. */
const IMPORT_JSON_MAX_BYTES = 64 * 1024 * 1024;
/** Limit of a line, or a CSV row, of an imported file. */
const IMPORT_LINE_MAX_CHARACTERS = 16 * 1024 * 1024;
/** Size of the chunks in which CSV rows are parsed. */
const CSV_CHUNK_CHARACTERS = 256 * 1024;

/** Record of an imported file. */
export interface SourceRecord {
  /** Position in the file, `line 17`, or `element 17` of a JSON array; from 1. */
  place: string;
  record: JsonObject;
  /** Number of bytes of the file read so far. */
  bytesRead: number;
}

/** Invalid content of the file. */
export class FileMistake extends Error {}

export const ACCEPTED = ".csv,.json,.ndjson,.jsonl";

/** Reads the records of a file in sequence. The file's name determines its format. Errors: `FileMistake` with the position. */
export function readRecords(file: File, schema: TableSchema): AsyncGenerator<SourceRecord> {
  const ending = /\.(\w+)$/.exec(file.name.toLowerCase())?.[1];
  if (ending === "csv") return readCsv(file, schema);
  if (ending === "json") return readArray(file);
  if (ending === "ndjson" || ending === "jsonl") return readLines(file);
  throw new FileMistake("The name of the file ends in .csv, .json, .ndjson or .jsonl");
}

function asRecord(value: unknown, place: string): JsonObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  throw new FileMistake(`${place}: must be a JSON object`);
}

function parsedJson(text: string, place: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new FileMistake(`${place}: is not valid JSON (${cause instanceof Error ? cause.message : cause})`);
  }
  const fault = jsonTextFault(text, value);
  if (fault !== null) throw new FileMistake(`${place}: ${describeFault("it", fault)}`);
  return value;
}

async function* textsOf(file: File): AsyncGenerator<{ text: string; bytesRead: number }> {
  const decoded = decoderOf(file);
  const reader = file.stream().getReader();
  let bytesRead = 0;
  for (;;) {
    const { value, done } = await reader.read();
    bytesRead += value?.byteLength ?? 0;
    yield { text: decoded(value, { stream: !done }), bytesRead };
    if (done) return;
  }
}

/** Skips a byte order mark. Errors: `FileMistake` for other encodings, whose letters would be lost. */
function decoderOf({ name }: File): TextDecoder["decode"] {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return (...given) => {
    try {
      return decoder.decode(...given);
    } catch {
      throw new FileMistake(`${name} is not encoded as UTF-8`);
    }
  };
}

async function* readArray(file: File): AsyncGenerator<SourceRecord> {
  if (file.size > IMPORT_JSON_MAX_BYTES) {
    throw new FileMistake("A JSON array of this size is read as a whole: use NDJSON, CSV or platform import");
  }
  const values = parsedJson(decoderOf(file)(await file.arrayBuffer()), file.name);
  if (!Array.isArray(values)) throw new FileMistake(`${file.name} must contain a JSON array`);
  for (const [index, value] of values.entries()) {
    const place = `element ${index + 1}`;
    yield { place, record: asRecord(value, place), bytesRead: Math.round((file.size * (index + 1)) / values.length) };
  }
}

async function* readLines(file: File): AsyncGenerator<SourceRecord> {
  let rest = "";
  let number = 0;
  for await (const { text, bytesRead } of textsOf(file)) {
    const isLast = bytesRead === file.size && text === "";
    const lines = (rest + text).split("\n");
    rest = isLast ? "" : (lines.pop() ?? "");
    if (rest.length > IMPORT_LINE_MAX_CHARACTERS) throw new FileMistake(`line ${number + 1} is too long`);
    for (const line of lines) {
      number++;
      const place = `line ${number}`;
      if (line.trim() !== "") yield { place, record: asRecord(parsedJson(line, place), place), bytesRead };
    }
  }
}

/** Returns where the last complete row of CSV text ends: at a line break outside of quotes. 0: there is none. */
function endOfRows(text: string): number {
  let isQuoted = false;
  let end = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (character === "\n" && !isQuoted) end = at + 1;
  }
  return end;
}

async function* readCsv(file: File, schema: TableSchema): AsyncGenerator<SourceRecord> {
  let columns: readonly string[] | null = null;
  let rest = "";
  let line = 1;
  for await (const { text, bytesRead } of textsOf(file)) {
    rest += text;
    const isLast = bytesRead === file.size && text === "";
    if (!isLast && rest.length < CSV_CHUNK_CHARACTERS) continue;
    const end = isLast ? rest.length : endOfRows(rest);
    if (end === 0 && rest.length > IMPORT_LINE_MAX_CHARACTERS) throw new FileMistake(`line ${line} is too long`);
    const rows = rest.slice(0, end);
    rest = rest.slice(end);
    for (const { cells, lines } of rowsOf(rows, line)) {
      const place = `line ${line + lines}`;
      if (columns === null) columns = columnsOf(cells);
      else yield { place, record: csvRecord(columns, cells, schema, place), bytesRead };
    }
    line += breaksOf(rows);
  }
  if (columns === null) throw new FileMistake("The file is empty: its first line names the fields");
}

const breaksOf = (text: string): number => text.split("\n").length - 1;

/** Parses the rows of a text, each with the number of lines before it. */
function* rowsOf(text: string, line: number): Generator<{ cells: Cell[]; lines: number }> {
  let rows: { record: Cell[]; raw: string }[];
  try {
    rows = parse(text, {
      raw: true,
      // Column counts are checked where the line number is known.
      relax_column_count: true,
      // The text alone does not show whether it was quoted.
      cast: (cell, { quoting }) => ({ text: cell, isQuoted: quoting }),
      // `raw` and `cast` above produce these types.
    }) as unknown as { record: Cell[]; raw: string }[];
  } catch (cause) {
    throw new FileMistake(`From line ${line}: ${cause instanceof Error ? cause.message : cause}`);
  }
  let lines = 0;
  for (const { record: cells, raw } of rows) {
    const isBlank = cells.length === 1 && cells[0]?.text === "" && !cells[0].isQuoted;
    if (!isBlank) yield { cells, lines };
    lines += breaksOf(raw);
  }
}

function columnsOf(cells: readonly Cell[]): string[] {
  const names = cells.map((cell) => parseText(cell.text.trim()));
  const fault = headFault(names);
  if (fault !== null) throw new FileMistake(`The first line ${fault}`);
  return names;
}

function csvRecord(
  columns: readonly string[],
  cells: readonly Cell[],
  { fields }: TableSchema,
  place: string,
): JsonObject {
  if (cells.length !== columns.length) {
    throw new FileMistake(
      `${place}: has ${cells.length === 1 ? "1 cell" : `${cells.length} cells`}, but the first line names ${columns.length} fields`,
    );
  }
  const members: [name: string, value: JsonValue][] = [];
  for (const [index, name] of columns.entries()) {
    const cell = cells[index];
    if (cell === undefined) continue;
    try {
      const value = parseCell(cell, fields[name]?.type);
      // The server sets these fields if the file has no value.
      if (value !== null || fields[name]?.generated !== true) members.push([name, value]);
    } catch {
      throw new FileMistake(`${place}: ${name}: is not valid JSON`);
    }
  }
  // Assigning `__proto__` would silently drop the column, instead of letting the server refuse it.
  return Object.fromEntries(members);
}
