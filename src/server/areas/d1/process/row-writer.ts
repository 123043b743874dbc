import { RESULT_MAX_BYTES } from "../limits.ts";
import { QueryError } from "./query-failure.ts";

/** Rows as JSON objects, one after another, up to a bounded size. */
export class RowWriter {
  count = 0;
  readonly #parts: string[] = [];
  #sizeBytes = 0;
  /** Of columns with one name the last one counts, as in every object. */
  readonly #columns: readonly (readonly [index: number, json: string])[];

  constructor(names: readonly string[]) {
    const last = new Map(names.map((name, index) => [name, index]));
    this.#columns = [...last].map(([name, index]) => [index, `${JSON.stringify(name)}:`] as const);
  }

  get text(): string {
    return this.#parts.join("");
  }

  add(row: readonly unknown[]): void {
    // Before it becomes text, which takes several times as much.
    this.#assertFits(this.#columns.reduce((sum, [index]) => sum + lengthOf(row[index]), 0));
    let text = this.count++ === 0 ? "{" : ",{";
    let separator = "";
    for (const [index, json] of this.#columns) {
      text += separator + json + jsonOf(row[index]);
      separator = ",";
    }
    text += "}";
    this.#parts.push(text);
    this.#sizeBytes += Buffer.byteLength(text);
    this.#assertFits(0);
  }

  #assertFits(furtherBytes: number): void {
    if (this.#sizeBytes + furtherBytes <= RESULT_MAX_BYTES) return;
    throw new QueryError({ status: 413, message: `The rows must be at most ${RESULT_MAX_BYTES} bytes: use LIMIT` });
  }
}

/** At most the bytes that it takes as JSON. */
const lengthOf = (value: unknown): number =>
  typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 0;

/** Integers beyond 2^53 become strings, blobs base64 strings, infinite numbers null. */
function jsonOf(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? String(value) : `"${value}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  if (value instanceof Uint8Array)
    return `"${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64")}"`;
  return "null";
}
