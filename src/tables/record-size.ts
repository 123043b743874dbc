import type { TableRecord } from "../config/types.ts";
import type { FieldProblems } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json.ts";
import { RECORD_BYTES_MAX } from "./limits.ts";
import type { TableModel } from "./model.ts";

/** Bytes that a number, a boolean or null takes as JSON, at most. */
const SCALAR_BYTES_MAX = 25;
/** Bytes that one UTF-16 unit takes as JSON, at most: as an escape. */
const UNIT_BYTES_MAX = 6;
/** Quotes, the colon and the comma of a member. */
const PUNCTUATION_BYTES = 6;

/** null where the record is small enough, else `too_large` for the field that takes most of it. */
export function recordSizeProblem(model: TableModel, record: TableRecord): FieldProblems | null {
  const maxBytes = model.config.maxRecordSize ?? RECORD_BYTES_MAX;
  if (bytesAtMost(record) <= maxBytes) return null;
  const bytes = jsonBytes(record);
  if (bytes <= maxBytes) return null;
  const [largest = "id"] = Object.keys(record).sort((a, b) => jsonBytes(record[b]) - jsonBytes(record[a]));
  const message = `A record must have at most ${maxBytes} bytes of JSON, got ${bytes}; ${largest} is its largest field`;
  return { [largest]: { code: "too_large", message } };
}

const jsonBytes = (value: JsonValue | TableRecord | undefined): number =>
  Buffer.byteLength(JSON.stringify(value ?? null));

/** More than the JSON takes, found without making it where the fields are texts and numbers. */
function bytesAtMost(record: TableRecord): number {
  let bytes = 2;
  for (const name in record) {
    const value = record[name];
    bytes += name.length * UNIT_BYTES_MAX + PUNCTUATION_BYTES;
    if (typeof value === "string") bytes += value.length * UNIT_BYTES_MAX;
    else if (typeof value === "object" && value !== null) bytes += jsonBytes(value);
    else bytes += SCALAR_BYTES_MAX;
  }
  return bytes;
}
