import { badField } from "../../../../kernel/errors.ts";
import { instantOf } from "../../../../kernel/time/iso-datetime.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { SqlValue } from "../../../db/index.ts";
import { jsonNumber } from "../filters/slots.ts";
import { formerKeyOf, isById, type Sort, sortValues } from "../filters/sort.ts";
import { CURSOR_LENGTH_MAX } from "../limits.ts";
import { idProblem } from "../model/validation.ts";

/** Prefix that distinguishes a cursor from a record id, which is also accepted in the order by id. */
const PREFIX = "c2~";
/** Prefix of cursors of 0.2, whose datetimes may be of another form than the stored ones are now. [TB683] */
const FORMER_PREFIX = "c1~";

/**
 * Encodes the position of a record in an order. The cursor contains the values, so that it stays valid when the record is
 * deleted. [TB7]
 */
export function encodeCursor(sort: Sort, record: TableRecord): string {
  const text = JSON.stringify([sort.key, ...sortValues(sort, record)]);
  return PREFIX + Buffer.from(text).toString("base64url");
}

/** Decodes the values of a cursor. Errors: 400 for one that is malformed or of another order. [TB8] */
export function decodeCursor(sort: Sort, text: string, name: "after" | "before"): SqlValue[] {
  const fail = (message: string): never => {
    throw badField(name, "invalid_value", `${name}: ${message}`);
  };
  const isFormer = text.startsWith(FORMER_PREFIX);
  if (!isFormer && !text.startsWith(PREFIX)) {
    if (isById(sort) && idProblem(text) === null) return [text];
    return fail("this is not a cursor");
  }
  if (text.length > CURSOR_LENGTH_MAX) return fail("this is not a cursor");
  const parsed = parse(Buffer.from(text.slice(PREFIX.length), "base64url").toString("utf8"));
  if (parsed === null) return fail("this is not a cursor");
  const [key, ...values] = parsed;
  if ((key !== sort.key && key !== formerKeyOf(sort)) || values.length !== sort.terms.length)
    return fail(`this cursor belongs to another sort than ${sort.key}`);
  return sort.terms.map(({ field }, index) => {
    const value = values[index] ?? null;
    // Every record has an id.
    if (field.name === "id" && value === null) return fail("this is not a cursor");
    if (field.isJson) return jsonNumber(value);
    const isText = isFormer && field.column.type === "datetime" && typeof value === "string";
    return isText ? (instantOf(value) ?? value) : value;
  });
}

function parse(text: string): SqlValue[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  const isScalar = (one: unknown) => one === null || typeof one === "string" || typeof one === "number";
  return value.every(isScalar) ? (value as SqlValue[]) : null;
}
