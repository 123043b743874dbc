import { SENT_AS_JSON_MIN } from "../limits.ts";
import type { SentValues, SqlValue } from "./requests.ts";

/** Many values go as one JSON text where it keeps them: Bun takes a time for each value of a message. */
export function sentValues(values: readonly SqlValue[]): SentValues {
  return values.length < SENT_AS_JSON_MIN || !values.every(isKeptByJson) ? values : JSON.stringify(values);
}

export function receivedValues(sent: SentValues): readonly SqlValue[] {
  // Written by `sentValues`.
  return typeof sent === "string" ? (JSON.parse(sent) as SqlValue[]) : sent;
}

function isKeptByJson(value: SqlValue): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  return value === null || typeof value === "string" || typeof value === "boolean";
}
