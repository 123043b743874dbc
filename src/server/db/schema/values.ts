import type { Database } from "bun:sqlite";
import { Compile } from "typebox/schema";
import { isGeoText } from "../../../kernel/records/geo-values.ts";
import { instantOf, isIsoDate } from "../../../kernel/time/iso-datetime.ts";
import { quoteIdentifier as quote } from "../identifiers.ts";
import type { DeclaredColumn, DeclaredValues } from "./types.ts";

/** Counts the records whose value in this column is not one that it accepts. Every value is read. */
export function countUnaccepted(sqlite: Database, table: string, column: string, values: DeclaredValues): number {
  const accepts = acceptance(values);
  const name = quote(column);
  const statement = sqlite.prepare<{ value: string | number }, []>(
    `SELECT ${name} AS value FROM ${quote(table)} WHERE ${name} IS NOT NULL`,
  );
  let count = 0;
  for (const { value } of statement.iterate()) if (!accepts(value)) count++;
  statement.finalize();
  return count;
}

function acceptance({ schema, pattern, form }: DeclaredValues): (value: string | number) => boolean {
  const compiled = Compile(schema);
  const expression = pattern === null ? null : new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ""));
  return (value) => {
    if (form === "ids") {
      const ids = idsIn(String(value));
      return ids !== null && compiled.Check(ids);
    }
    if (form === "datetime" && instantOf(String(value)) === null) return false;
    if (form === "date" && !isIsoDate(String(value))) return false;
    if (form === "geo" && !isGeoText(String(value))) return false;
    if (form === "boolean" && value !== 0 && value !== 1) return false;
    return compiled.Check(value) && (expression === null || expression.test(String(value)));
  };
}

/** Returns the ids in a JSON array of texts, none of them twice; null for another value. */
function idsIn(text: string): string[] | null {
  try {
    const ids: unknown = JSON.parse(text);
    const isIds = Array.isArray(ids) && ids.every((id) => typeof id === "string") && new Set(ids).size === ids.length;
    return isIds ? ids : null;
  } catch {
    return null;
  }
}

/** Describes what a column accepts: `must be one of "a", "b"`. */
export function acceptedText({ values, columnKind }: { values: DeclaredValues; columnKind: string }): string {
  const { schema, pattern, form } = values;
  const isText = columnKind === "string" || columnKind === "text";
  const unit = isText ? " characters" : "";
  const parts: string[] = [];
  if (schema.enum !== undefined) parts.push(`be one of ${schema.enum.map((one) => JSON.stringify(one)).join(", ")}`);
  const [min, max] = [schema.minLength ?? schema.minimum, schema.maxLength ?? schema.maximum];
  if (min !== undefined) parts.push(`${isText ? "have" : "be"} at least ${min}${unit}`);
  if (max !== undefined) parts.push(`${isText ? "have" : "be"} at most ${max}${unit}`);
  if (form === "ids") parts.push("be a JSON array of ids, none of them twice");
  if (schema.minItems !== undefined) parts.push("have an id");
  if (schema.maxItems !== undefined) parts.push(`have at most ${schema.maxItems} ids`);
  if (pattern !== null) parts.push(`match ${pattern.source}`);
  if (form === "datetime") parts.push("be a date and time with an offset, such as 2024-05-06T04:00:00.000Z");
  if (form === "date") parts.push("be a date such as 2024-05-06");
  if (form === "geo") parts.push('be a point such as {"lat":48.2,"lng":16.37}');
  if (form === "boolean") parts.push("be 0 or 1");
  return `must ${parts.join(" and ")}`;
}

/** Reports whether stored values have to be compared with what the column accepts now. */
export function isNarrowed(column: DeclaredColumn, before: DeclaredColumn | undefined, isRetyped: boolean): boolean {
  const { values = null } = column;
  if (values === null) return false;
  if (before === undefined || isRetyped) return true;
  // A file of 0.2 does not store its earlier declaration: it opens unchecked, as it did.
  return before.values !== undefined && !Bun.deepEquals(before.values, values);
}
